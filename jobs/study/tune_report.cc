#include "jobs/study/tune_report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jobs/messages/text.h"
#include "jobs/report/json.h"
#include "jobs/study/svg_chart.h"

namespace arbalest::jobs {

namespace {

// Scheme whose learners compute their gradients at one point (autotuner/noise_scale.h).
constexpr std::string_view kUnbiased = "s_sgd";

nlohmann::ordered_json null_unless_known(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json to_json(const std::vector<TunePoint>& points) {
  auto json = nlohmann::ordered_json::array();
  for (const TunePoint& point : points) {
    json.push_back({{"learners", per_device(point.learners)},
                    {"threads", per_device(point.threads)},
                    {"images_per_second", point.images_per_second},
                    {"error", point.error},
                    {"efficiency", null_unless_known(point.efficiency)},
                    {"goodput", point.efficiency ? nlohmann::ordered_json(point.goodput()) : nlohmann::ordered_json()},
                    {"learner_bytes", point.learner_bytes}});
  }
  return json;
}

const std::vector<TunePoint>& curve_of(const TuneResult& result) {
  return result.sweep.empty() ? result.points : result.sweep;
}

bool are_alike(const std::vector<int>& counts) {
  return std::ranges::adjacent_find(counts, std::ranges::not_equal_to()) == counts.end();
}

const char* name_of(TuningObjective objective) {
  return objective == TuningObjective::kGoodput ? "goodput" : "throughput";
}

// "4", or "3, 6" by device.
std::string counts_text(const std::vector<int>& counts) {
  return are_alike(counts) ? std::to_string(counts.front()) : fmt::format("{}", fmt::join(counts, ", "));
}

// "4 learners on each device", "3 learners on cpu:0-2, 6 learners on cpu:3"
std::string chosen_text(const TuneResult& result) {
  if (are_alike(result.chosen)) return counted(result.chosen.front(), "learner") + " on each device";
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < result.chosen.size(); ++d) {
    parts.push_back(fmt::format("{} on {}", counted(result.chosen[d], "learner"), result.devices[d]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

nlohmann::ordered_json to_json(const TuneResult& result) {
  return {{"job", result.job},
          {"devices", result.devices},
          {"batch_size", result.batch_size},
          {"precision", result.precision},
          {"status", result.is_complete ? "completed" : "stopped"},
          {"chosen", result.chosen},
          {"reason", result.reason},
          {"images_per_second", result.images_per_second},
          {"objective", name_of(result.objective)},
          {"synchronization", result.synchronization},
          {"noise_scale", null_unless_known(result.noise_scale)},
          {"regret", null_unless_known(result.regret)},
          {"probes", result.probes},
          {"seconds", result.seconds},
          {"points", to_json(result.points)},
          {"sweep", to_json(result.sweep)}};
}

std::string to_text(const TuneResult& result) {
  const bool by_goodput = result.objective == TuningObjective::kGoodput;
  std::vector<std::vector<std::string>> rows = {{"learners", "threads each", "examples/s", "error"}};
  if (by_goodput) rows.front().insert(rows.front().end(), {"efficiency", "goodput"});
  rows.front().insert(rows.front().end(), {"memory", ""});
  for (const TunePoint& point : curve_of(result)) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {counts_text(point.learners), counts_text(point.threads), grouped(std::llround(point.images_per_second)),
           fmt::format("{:.1f} %", 100.0 * point.error)};
    if (by_goodput) {
      row.push_back(point.efficiency ? fmt::format("{:.2f}", *point.efficiency) : "unknown");
      row.push_back(point.efficiency ? grouped(std::llround(point.goodput())) : "unknown");
    }
    row.push_back(bytes_text(point.learner_bytes));
    row.push_back(point.learners == result.chosen ? "chosen" : "");
  }
  std::string text = table(rows, 0);
  if (result.noise_scale) {
    text += fmt::format("\ngradient noise scale: {:.0f} examples\n", *result.noise_scale);
    if (result.synchronization != kUnbiased) {
      text += fmt::format(
          "under {} it comes out too large, as its learners stand at different points: efficiency and goodput of many "
          "learners are too high. Under {} it is unbiased.\n",
          result.synchronization, kUnbiased);
    }
  }
  text += fmt::format("\n{}: {}\n", chosen_text(result), result.reason);
  if (result.regret) {
    text += fmt::format("{:.1f} % {} than the best of the sweep\n", 100.0 * *result.regret,
                        result.noise_scale ? "less goodput" : "slower");
  }
  if (!result.is_complete) text += "stopped before the sweep had ended\n";
  return text;
}

// If the devices have different numbers, the x axis shows the learners of all devices. Points of the sweep with
// different numbers are not part of its curve; they are drawn as dots.
std::string to_svg(const TuneResult& result) {
  const std::vector<TunePoint>& points = curve_of(result);
  const bool each = std::ranges::all_of(points, are_alike, &TunePoint::learners);
  const auto learners = [&](const TunePoint& point) {
    return each ? point.learners.front() : std::accumulate(point.learners.begin(), point.learners.end(), 0);
  };
  ChartSeries curve{.color = 0, .dots = true, .points = {}};
  ChartSeries beside = curve;
  double most = 1.0;
  int most_learners = 2;
  for (const TunePoint& point : points) {
    ChartSeries& series = result.sweep.empty() || are_alike(point.learners) ? curve : beside;
    series.points.push_back(
        {static_cast<double>(learners(point)), point.images_per_second, point.learners == result.chosen});
    most = std::max(most, point.images_per_second);
    most_learners = std::max(most_learners, learners(point));
  }
  const std::string over = each ? "learners per device" : "learners of all devices";
  const LineChart chart{
      .title = fmt::format("{}: examples/s over {}, mini-batches of {}", result.job, over, result.batch_size),
      .x = doubling_axis(each ? over : fmt::format("{}; chosen: {}", over, chosen_text(result)), most_learners),
      .y = linear_axis("examples/s", 0.0, most, tick_text),
      .series = {curve, beside},
      .level = {}};
  return as_document(to_svg(chart));
}

}  // namespace arbalest::jobs
