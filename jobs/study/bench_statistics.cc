#include "jobs/study/bench_statistics.h"

#include <algorithm>
#include <limits>
#include <numeric>

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
    case BenchOutcome::kReached:
      ++statistics.reached;
      break;
    case BenchOutcome::kDiverged:
      ++statistics.diverged;
      [[fallthrough]];
    case BenchOutcome::kNotReached:
      ++statistics.not_converged;
      break;
    case BenchOutcome::kDied:
      ++statistics.died;
      break;
    case BenchOutcome::kStopped:
    case BenchOutcome::kNotRun:
      ++statistics.stopped;
      break;
  }
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
  std::vector<double> accuracies;
  BenchPhases& phases = statistics.phases;
  for (const BenchRun& run : runs) {
    count(run, statistics);
    if (!run.is_measured()) continue;
    ++statistics.measured;
    times.push_back(run.time_to_accuracy_seconds.value_or(kNever));
    epochs.push_back(run.time_to_accuracy_seconds ? run.epochs : kNever);
    if (const auto seconds = run.seconds_per_epoch()) epoch_seconds.push_back(*seconds);
    if (run.images_per_second > 0.0) rates.push_back(run.images_per_second);
    if (run.test_accuracy) accuracies.push_back(*run.test_accuracy);
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
  statistics.test_accuracy = spread_of(accuracies);
  statistics.trimmed_mean_seconds = trimmed_mean(times);
  return statistics;
}

}  // namespace arbalest::jobs
