#include "study/bench/bench_charts.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "study/bench/bench_report.h"

namespace arbalest::jobs {

namespace {

// Adds nothing for an empty spread.
void add_point(double x, const BenchSpread& spread, ChartSeries& series) {
  if (spread.median) series.points.push_back({x, *spread.median, false, spread.least, spread.most});
}

// Accuracies of the runs of a series, by number of learners. Series are in the order of the cases.
struct LearnerSeries {
  std::string name;
  std::map<int, std::vector<double>> accuracies;
};

std::vector<LearnerSeries> series_over_learners(const BenchResult& result) {
  std::vector<LearnerSeries> all;
  for (const BenchCase& of : result.plan.cases) {
    const auto same = [&](const LearnerSeries& series) { return series.name == of.series_name; };
    if (std::ranges::none_of(all, same)) all.push_back({of.series_name, {}});
  }
  for (const BenchRun& run : result.runs) {
    if (!run.is_measured() || !run.test_accuracy) continue;
    const std::string& name = result.plan.cases[run.case_index].series_name;
    const auto series = std::ranges::find(all, name, &LearnerSeries::name);
    series->accuracies[run.learners].push_back(*run.test_accuracy);
  }
  return all;
}

}  // namespace

bool has_validation(const BenchResult& result) {
  return std::ranges::any_of(result.runs, [](const BenchRun& run) {
    return std::ranges::any_of(run.rows, [](const BenchEpoch& row) { return row.validation_accuracy.has_value(); });
  });
}

std::string accuracy_title(const BenchResult& result) {
  std::string text = result.plan.accuracy_text();
  text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  return text;
}

LineChart accuracy_over_epochs(const BenchResult& result) {
  LineChart chart{.title = accuracy_title(result) + " over epochs (medians and ranges)",
                  .x = {"epochs", ChartScale::kLinear, 0.0},
                  .y = {result.plan.accuracy_text(), ChartScale::kPercent},
                  .level = result.plan.target,
                  .legend = true};
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    ChartSeries& series = chart.series.emplace_back(ChartSeries{
        .color = static_cast<int>(i), .dots = true, .ranges = ChartRanges::kBand, .name = result.plan.cases[i].name});
    for (const BenchEpochSpread& of : spreads_by_epoch(runs_of(result, i))) {
      add_point(of.epoch, of.decisive_accuracy, series);
    }
  }
  return chart;
}

std::optional<LineChart> accuracy_over_learners(const BenchResult& result) {
  constexpr double kShift = 6.0;
  const std::vector<LearnerSeries> all = series_over_learners(result);
  LineChart chart{.title = "Test accuracy at the end over learners (medians and ranges)",
                  .x = {"learners, of all devices", ChartScale::kDoubling},
                  .y = {"test accuracy", ChartScale::kPercent},
                  .legend = true};
  std::set<int> learners;
  for (const LearnerSeries& of : all) {
    const int color = static_cast<int>(chart.series.size());
    ChartSeries& series =
        chart.series.emplace_back(ChartSeries{.color = color,
                                              .dots = true,
                                              .ranges = ChartRanges::kWhiskers,
                                              .shift = kShift * (color - static_cast<double>(all.size() - 1) / 2.0),
                                              .name = of.name});
    for (const auto& [count, accuracies] : of.accuracies) {
      add_point(count, spread_of(accuracies), series);
      learners.insert(count);
    }
  }
  return learners.size() < 2 ? std::nullopt : std::optional(chart);
}

}  // namespace arbalest::jobs
