#include "study/bench/bench_statistics.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace arbalest::jobs {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

std::optional<double> none_if_never(double value) { return value < kNever ? std::optional(value) : std::nullopt; }

std::optional<double> trimmed_mean(std::vector<double> values) {
  if (values.size() < 3) return std::nullopt;
  std::ranges::sort(values);
  const double sum = std::accumulate(values.begin() + 1, values.end() - 1, 0.0);
  return none_if_never(sum / static_cast<double>(values.size() - 2));
}

void count(const BenchRun& run, BenchStatistics& statistics) {
  ++statistics.runs;
  switch (run.outcome) {
    case BenchOutcome::kReached: ++statistics.reached; break;
    case BenchOutcome::kDiverged: ++statistics.diverged; [[fallthrough]];
    case BenchOutcome::kNotReached: ++statistics.not_converged; break;
    case BenchOutcome::kCompleted: break;
    case BenchOutcome::kDied: ++statistics.died; break;
    case BenchOutcome::kStopped:
    case BenchOutcome::kNotRun: ++statistics.stopped; break;
  }
}

// Spread over the runs that have the value.
BenchSpread spread_of_measured(const std::vector<BenchRun>& runs, std::optional<double> BenchRun::*value) {
  std::vector<double> values;
  for (const BenchRun& run : runs) {
    if (run.is_measured() && run.*value) values.push_back(*(run.*value));
  }
  return spread_of(std::move(values));
}

}  // namespace

BenchSpread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const double median = (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2.0;
  return {none_if_never(median), none_if_never(values.front()), none_if_never(values.back())};
}

BenchStatistics summarize(const std::vector<BenchRun>& runs) {
  BenchStatistics statistics;
  std::vector<double> times;
  std::vector<double> epochs;
  std::vector<double> epoch_seconds;
  std::vector<double> rates;
  BenchPhases& phases = statistics.phases;
  for (const BenchRun& run : runs) {
    count(run, statistics);
    if (!run.is_measured()) continue;
    ++statistics.measured;
    times.push_back(run.time_to_accuracy_seconds.value_or(kNever));
    epochs.push_back(run.time_to_accuracy_seconds ? run.epochs : kNever);
    if (const auto seconds = run.seconds_per_epoch()) epoch_seconds.push_back(*seconds);
    if (run.images_per_second > 0.0) rates.push_back(run.images_per_second);
    phases.preparation += run.phases.preparation;
    phases.training += run.phases.training;
    phases.evaluation += run.phases.evaluation;
    phases.other += run.phases.other;
    if (run.phases.working) phases.working = phases.working.value_or(0.0) + *run.phases.working;
    if (run.phases.averaging_wait) {
      phases.averaging_wait = phases.averaging_wait.value_or(0.0) + *run.phases.averaging_wait;
    }
  }
  const double measured = std::max(1, statistics.measured);
  for (double* phase : {&phases.preparation, &phases.training, &phases.evaluation, &phases.other}) *phase /= measured;
  if (phases.working) *phases.working /= measured;
  if (phases.averaging_wait) *phases.averaging_wait /= measured;
  statistics.time_to_accuracy = spread_of(times);
  statistics.epochs_to_target = spread_of(epochs);
  statistics.seconds_per_epoch = spread_of(epoch_seconds);
  statistics.images_per_second = spread_of(rates);
  statistics.test_accuracy = spread_of_measured(runs, &BenchRun::test_accuracy);
  statistics.best_test_accuracy = spread_of_measured(runs, &BenchRun::best_test_accuracy);
  statistics.validation_accuracy = spread_of_measured(runs, &BenchRun::validation_accuracy);
  statistics.best_validation_accuracy = spread_of_measured(runs, &BenchRun::best_validation_accuracy);
  statistics.replica_distance = spread_of_measured(runs, &BenchRun::replica_distance);
  statistics.trimmed_mean_seconds = trimmed_mean(times);
  return statistics;
}

std::vector<BenchEpochSpread> spreads_by_epoch(const std::vector<BenchRun>& runs) {
  struct Values {
    std::vector<double> train;
    std::vector<double> test;
    std::vector<double> validation;
    std::vector<double> decisive;
  };
  std::map<int, Values> by_epoch;
  for (const BenchRun& run : runs) {
    if (!run.is_measured()) continue;
    for (const BenchEpoch& row : run.rows) {
      Values& values = by_epoch[row.epoch];
      if (row.train_accuracy) values.train.push_back(*row.train_accuracy);
      values.decisive.push_back(row.decisive_accuracy());
      if (row.test_accuracy) values.test.push_back(*row.test_accuracy);
      if (row.validation_accuracy) values.validation.push_back(*row.validation_accuracy);
    }
  }
  std::vector<BenchEpochSpread> spreads;
  for (const auto& [epoch, values] : by_epoch) {
    spreads.push_back({epoch, static_cast<int>(values.decisive.size()), spread_of(values.train), spread_of(values.test),
                       spread_of(values.validation), spread_of(values.decisive)});
  }
  return spreads;
}

}  // namespace arbalest::jobs
