#include "study/bench/bench_tables.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "messages/text.h"
#include "study/bench/bench_charts.h"
#include "study/bench/bench_report.h"
#include "study/svg_chart.h"

namespace arbalest::jobs {

namespace {

// 0.98765 -> "98.77"
std::string percent_number(double fraction) {
  const std::string text = percent(fraction);
  return text.substr(0, text.find(' '));
}

int measured(const BenchSpread& spread, const BenchStatistics& of) { return spread.median ? of.measured : 0; }

int last_epoch(const BenchResult& result) {
  int last = 0;
  for (const BenchRun& run : result.runs) {
    if (run.is_measured() && !run.rows.empty()) last = std::max(last, run.rows.back().epoch);
  }
  return last;
}

// Whether a run ended before another run of the same case.
bool some_ended_early(const BenchResult& result) {
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    const std::vector<BenchRun> runs = runs_of(result, i);
    const std::vector<BenchEpochSpread> spreads = spreads_by_epoch(runs);
    if (!spreads.empty() && spreads.back().runs < summarize(runs).measured) return true;
  }
  return false;
}

// "target_reached", "not_reached: the lower median of the last 5 evaluations is 98.12 %", "died: ...".
std::string outcome_text(const BenchRun& run, std::optional<double> target) {
  std::string reason = run.message;
  if (run.outcome == BenchOutcome::kNotReached && run.held_accuracy()) {
    reason = to_string(*run.held_accuracy(), target.value_or(1.0));
  }
  return reason.empty() ? std::string(to_string(run.outcome)) : fmt::format("{}: {}", to_string(run.outcome), reason);
}

}  // namespace

std::string how_many(const BenchStatistics& statistics, bool has_target) {
  const int done = has_target ? statistics.reached : statistics.measured - statistics.diverged;
  std::string text = fmt::format("{} of {}", done, statistics.runs);
  if (statistics.diverged > 0) text += fmt::format(", {} diverged", statistics.diverged);
  if (statistics.died > 0) text += fmt::format(", {} died", statistics.died);
  if (statistics.stopped > 0) text += fmt::format(", {} not run to the end", statistics.stopped);
  return text;
}

std::string spread_text(const BenchSpread& spread, int count, int decimals) {
  if (count == 0) return "-";
  const auto text = [&](const std::optional<double>& value) {
    if (!value) return std::string("not reached");
    return *value >= 1000.0 ? grouped(std::llround(*value)) : fmt::format("{:.{}f}", *value, decimals);
  };
  if (count == 1 || !spread.least) return text(spread.median);
  return fmt::format("{} ({} to {})", text(spread.median), text(spread.least), text(spread.most));
}

std::string percent_spread_text(const BenchSpread& spread, int count) {
  if (count == 0 || !spread.median) return "-";
  if (count == 1 || !spread.least || !spread.most) return percent_number(*spread.median);
  return fmt::format("{} ({} to {})", percent_number(*spread.median), percent_number(*spread.least),
                     percent_number(*spread.most));
}

std::vector<int> shown_epochs(int last) {
  constexpr int kMostMultiples = 8;
  int step = 1;
  for (int unit = 1; last / step > kMostMultiples; unit *= 10) {
    for (const int factor : {2, 5, 10}) {
      step = factor * unit;
      if (last / step <= kMostMultiples) break;
    }
  }
  std::vector<int> epochs;
  if (last >= 1) epochs.push_back(1);
  for (int epoch = step; epoch <= last; epoch += step) {
    if (epoch > 1) epochs.push_back(epoch);
  }
  if (last > 1 && epochs.back() != last) epochs.push_back(last);
  return epochs;
}

TableRows time_rows(const BenchResult& result) {
  if (!result.plan.target) return {};
  TableRows rows = {{"job", "reached", "not converged", "died", "stopped", "epochs to target", "seconds per epoch",
                     "seconds to target", "trimmed mean"}};
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    const BenchStatistics of = summarize(runs_of(result, i));
    rows.push_back({result.plan.cases[i].name, fmt::format("{} of {}", of.reached, of.runs),
                    std::to_string(of.not_converged), std::to_string(of.died), std::to_string(of.stopped),
                    spread_text(of.epochs_to_target, of.measured, 0), spread_text(of.seconds_per_epoch, of.measured, 2),
                    spread_text(of.time_to_accuracy, of.measured, 2),
                    of.trimmed_mean_seconds ? fmt::format("{:.2f}", *of.trimmed_mean_seconds) : "-"});
  }
  return rows;
}

TableRows accuracy_rows(const BenchResult& result) {
  const bool validates = has_validation(result);
  const bool has_best_test = std::ranges::any_of(
      result.plan.cases, [](const BenchCase& of) { return of.accuracy_set == EvaluationSet::kTest; });
  TableRows rows = {{"job", result.plan.target ? "reached" : "completed", "test accuracy, %"}};
  if (has_best_test) rows[0].push_back("best, %");
  if (validates) rows[0].insert(rows[0].end(), {"validation accuracy, %", "best, %"});
  rows[0].insert(rows[0].end(), {"images/s", "replica distance"});
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    const BenchStatistics of = summarize(runs_of(result, i));
    std::vector<std::string> row = {result.plan.cases[i].name, how_many(of, result.plan.target.has_value()),
                                    percent_spread_text(of.test_accuracy, of.measured)};
    if (has_best_test) row.push_back(percent_spread_text(of.best_test_accuracy, of.measured));
    if (validates) {
      row.push_back(percent_spread_text(of.validation_accuracy, of.measured));
      row.push_back(percent_spread_text(of.best_validation_accuracy, of.measured));
    }
    row.push_back(spread_text(of.images_per_second, measured(of.images_per_second, of), 0));
    row.push_back(spread_text(of.replica_distance, measured(of.replica_distance, of), 2));
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows epoch_rows(const BenchResult& result, bool with_ranges) {
  const std::vector<int> epochs = shown_epochs(last_epoch(result));
  if (epochs.empty()) return {};
  TableRows rows(1, {"job"});
  for (const int epoch : epochs) rows[0].push_back(std::to_string(epoch));
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    const std::vector<BenchRun> runs = runs_of(result, i);
    const int all = summarize(runs).measured;
    const std::vector<BenchEpochSpread> spreads = spreads_by_epoch(runs);
    std::vector<std::string> row = {result.plan.cases[i].name};
    for (const int epoch : epochs) {
      const auto found = std::ranges::find(spreads, epoch, &BenchEpochSpread::epoch);
      if (found == spreads.end()) {
        row.emplace_back("-");
        continue;
      }
      row.push_back(percent_spread_text(found->decisive_accuracy, with_ranges ? found->runs : 1));
      if (found->runs < all) row.back() += fmt::format(" [{}]", found->runs);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows run_rows(const BenchResult& result) {
  const bool has_target = result.plan.target.has_value();
  TableRows rows = {{"job", "seed", "outcome", "epochs"}};
  if (has_target) rows[0].push_back("seconds to target");
  const bool knows_processor =
      std::ranges::any_of(result.runs, [](const BenchRun& run) { return run.is_measured() && run.processor; });
  rows[0].insert(rows[0].end(), {"test accuracy", "images/s"});
  if (knows_processor) rows[0].insert(rows[0].end(), {"processor time lost", "processor us/image"});
  rows[0].insert(rows[0].end(), {"learners", "log"});
  for (const BenchRun& run : result.runs) {
    const bool told = run.is_measured();
    std::vector<std::string> row = {result.plan.cases[run.case_index].name, std::to_string(run.seed),
                                    outcome_text(run, result.plan.target), told ? std::to_string(run.epochs) : "-"};
    if (has_target) {
      row.push_back(run.time_to_accuracy_seconds ? fmt::format("{:.2f}", *run.time_to_accuracy_seconds) : "-");
    }
    row.push_back(run.test_accuracy ? percent(*run.test_accuracy) : "-");
    row.push_back(told ? tick_text(run.images_per_second) : "-");
    if (knows_processor) {
      const auto per_image = run.processor_seconds_per_image();
      row.push_back(told && run.processor ? fmt::format("{:.1f} %", 100.0 * run.processor->lost_share()) : "-");
      row.push_back(told && per_image ? tick_text(1e6 * *per_image) : "-");
    }
    row.push_back(told ? std::to_string(run.learners) : "-");
    row.push_back(run.log.empty() ? "-" : run.log);
    rows.push_back(std::move(row));
  }
  return rows;
}

int disturbed_runs(const BenchResult& result) {
  return static_cast<int>(std::ranges::count_if(result.runs, [](const BenchRun& run) {
    return run.is_measured() && run.processor && run.processor->is_disturbed();
  }));
}

namespace {

// What the runs lost to other programs; "" if that is not known of any, or little of all.
std::string disturbance_note(const BenchResult& result) {
  const int disturbed = disturbed_runs(result);
  if (disturbed == 0) return "";
  double most = 0.0;
  for (const BenchRun& run : result.runs) {
    if (run.is_measured() && run.processor) most = std::max(most, run.processor->lost_share());
  }
  return fmt::format(
      " THE MACHINE WAS BUSY: other programs took more than 5 % of the processor time that {} of {} runs wanted, up to "
      "{:.0f} %. Times and images/s then say more about them than about the jobs; processor time per image compares "
      "better.",
      disturbed, result.runs.size(), 100.0 * most);
}

}  // namespace

std::string table_notes(const BenchResult& result) {
  std::string notes = fmt::format(
      "Medians (least to most) over {}. A run that diverged has the accuracy of the last model that was finite.",
      counted(static_cast<std::int64_t>(result.plan.seeds.size()), "seed"));
  if (result.plan.target) {
    notes += fmt::format(
        " The target is {} {}. A run reaches it when the lower median of its last five evaluations is at it, and ends. "
        "A run "
        "that did not reach it counts as slower than all that did.",
        target_percent(*result.plan.target), result.plan.accuracy_text());
  }
  if (has_validation(result)) {
    notes += " With a validation set, the test set is evaluated once, at the end of a run.";
  }
  notes += disturbance_note(result);
  if (some_ended_early(result)) notes += " [2] means that 2 runs reached that epoch.";
  return notes;
}

}  // namespace arbalest::jobs
