#include "jobs/study/bench/bench_charts.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "jobs/study/bench/bench_report.h"

namespace arbalest::jobs {

namespace {

// Collects the smallest and the largest of the added values.
class Extent {
 public:
  void add(double value) {
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }
  ChartAxis percent_axis(std::string title) const {
    return least_ > most_ ? linear_axis(std::move(title), 0.0, 1.0, percent_tick_text)
                          : linear_axis(std::move(title), least_, most_, percent_tick_text);
  }

 private:
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = -least_;
};

// Adds nothing for an empty spread.
void add_point(double x, const BenchSpread& spread, ChartSeries& series, Extent& extent) {
  if (!spread.median) return;
  series.points.push_back({x, *spread.median, false, spread.least, spread.most});
  for (const auto& value : {spread.median, spread.least, spread.most}) {
    if (value) extent.add(*value);
  }
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
  constexpr int kMostDots = 12;
  LineChart chart{.title = accuracy_title(result) + " over epochs (medians and ranges)",
                  .x = {},
                  .y = {},
                  .series = {},
                  .level = {},
                  .legend = true};
  Extent extent;
  int last = 0;
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {
    ChartSeries& series = chart.series.emplace_back();
    series.color = static_cast<int>(i);
    series.dots = true;
    series.ranges = ChartRanges::kBand;
    series.name = result.plan.cases[i].name;
    for (const BenchEpochSpread& of : spreads_by_epoch(runs_of(result, i))) {
      add_point(of.epoch, of.decisive_accuracy, series, extent);
      last = std::max(last, of.epoch);
    }
  }
  for (ChartSeries& series : chart.series) series.dot_interval = 1 + (last - 1) / kMostDots;
  if (result.plan.target) {
    chart.level = result.plan.target;
    extent.add(*result.plan.target);
  }
  chart.x = linear_axis("epochs", 0.0, last, tick_text);
  chart.y = extent.percent_axis(result.plan.accuracy_text());
  return chart;
}

std::optional<LineChart> accuracy_over_learners(const BenchResult& result) {
  constexpr double kShift = 6.0;
  const std::vector<LearnerSeries> all = series_over_learners(result);
  LineChart chart{.title = "Test accuracy at the end over learners (medians and ranges)",
                  .x = {},
                  .y = {},
                  .series = {},
                  .level = {},
                  .legend = true};
  Extent extent;
  std::set<int> learners;
  for (const LearnerSeries& of : all) {
    ChartSeries& series = chart.series.emplace_back();
    series.color = static_cast<int>(chart.series.size()) - 1;
    series.dots = true;
    series.ranges = ChartRanges::kWhiskers;
    series.shift = kShift * (series.color - static_cast<double>(all.size() - 1) / 2.0);
    series.name = of.name;
    for (const auto& [count, accuracies] : of.accuracies) {
      add_point(count, spread_of(accuracies), series, extent);
      learners.insert(count);
    }
  }
  if (learners.size() < 2) return std::nullopt;
  chart.x = doubling_axis("learners, of all devices", *learners.rbegin());
  chart.y = extent.percent_axis("test accuracy");
  return chart;
}

}  // namespace arbalest::jobs
