#include "jobs/study/tune_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "jobs/study/svg_chart.h"
#include "jobs/wording/text.h"

namespace arbalest::jobs {

namespace {

nlohmann::ordered_json to_json(const std::vector<TunePoint>& points) {
  auto json = nlohmann::ordered_json::array();
  for (const TunePoint& point : points) {
    json.push_back({{"learners", point.learners},
                    {"threads", point.threads},
                    {"images_per_second", point.images_per_second},
                    {"error", point.error},
                    {"learner_bytes", point.learner_bytes}});
  }
  return json;
}

const std::vector<TunePoint>& curve_of(const TuneResult& result) {
  return result.sweep.empty() ? result.points : result.sweep;
}

}  // namespace

nlohmann::ordered_json to_json(const TuneResult& result) {
  return {{"job", result.job},
          {"devices", result.devices},
          {"batch_size", result.batch_size},
          {"precision", result.precision},
          {"chosen", result.chosen},
          {"reason", result.reason},
          {"images_per_second", result.images_per_second},
          {"regret", result.regret ? nlohmann::ordered_json(*result.regret) : nlohmann::ordered_json()},
          {"probes", result.probes},
          {"seconds", result.seconds},
          {"points", to_json(result.points)},
          {"sweep", to_json(result.sweep)}};
}

std::string to_text(const TuneResult& result) {
  std::vector<std::vector<std::string>> rows = {{"learners", "threads each", "images/s", "error", "memory", ""}};
  for (const TunePoint& point : curve_of(result)) {
    rows.push_back({std::to_string(point.learners), std::to_string(point.threads),
                    grouped(std::llround(point.images_per_second)), fmt::format("{:.1f} %", 100.0 * point.error),
                    bytes_text(point.learner_bytes), point.learners == result.chosen.front() ? "chosen" : ""});
  }
  std::string text = table(rows, 0);
  text += fmt::format("\n{} on each device: {}\n", counted(std::ranges::max(result.chosen), "learner"), result.reason);
  if (result.regret) {
    text += fmt::format("{:.1f} % slower than the best of the sweep\n", 100.0 * *result.regret);
  }
  return text;
}

std::string to_svg(const TuneResult& result) {
  const std::vector<TunePoint>& curve = curve_of(result);
  ChartSeries series{.color = 0, .dots = true, .points = {}};
  double most = 1.0;
  for (const TunePoint& point : curve) {
    series.points.push_back(
        {static_cast<double>(point.learners), point.images_per_second, point.learners == result.chosen.front()});
    most = std::max(most, point.images_per_second);
  }
  const LineChart chart{
      .title = fmt::format("{}: images/s over learners per device, mini-batches of {}", result.job, result.batch_size),
      .x = doubling_axis("learners per device", curve.empty() ? 2.0 : curve.back().learners),
      .y = linear_axis("images/s", 0.0, most, tick_text),
      .series = {series},
      .level = {}};
  return as_document(to_svg(chart));
}

}  // namespace arbalest::jobs
