#include "jobs/study/tune_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

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

// The largest of the curve and a little more, as one digit and zeros.
double top_of(const std::vector<TunePoint>& curve) {
  double most = 1.0;
  for (const TunePoint& point : curve) most = std::max(most, point.images_per_second);
  const double unit = std::pow(10.0, std::floor(std::log10(most)));
  return unit * std::ceil(most / unit);
}

constexpr double kLeft = 80.0;
constexpr double kRight = 620.0;
constexpr double kTop = 40.0;
constexpr double kBottom = 320.0;

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
  const double top = top_of(curve);
  const double most = std::log2(static_cast<double>(std::max(2, curve.empty() ? 2 : curve.back().learners)));
  const auto x = [&](int learners) { return kLeft + (kRight - kLeft) * std::log2(learners) / most; };
  const auto y = [&](double rate) { return kBottom - (kBottom - kTop) * rate / top; };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 660 380\" font-family=\"sans-serif\" font-size=\"13\">\n"
      "<style>:root{{color-scheme:light dark}}svg{{background:Canvas;color:CanvasText}}text{{fill:CanvasText}}"
      ".axis{{stroke:GrayText;stroke-width:1}}.curve{{fill:none;stroke:#2a7fba;stroke-width:2}}"
      ".point{{fill:#2a7fba}}.chosen{{fill:#d9622b}}</style>\n"
      "<title>{0}: images per second over learners</title>\n"
      "<text x=\"{1}\" y=\"22\">{0}: images/s over learners per device, mini-batches of {2}</text>\n"
      "<path class=\"axis\" d=\"M{1} {3}V{4}H{5}\" fill=\"none\"/>\n",
      result.job, kLeft, result.batch_size, kTop, kBottom, kRight);
  for (const double part : {0.0, 0.5, 1.0}) {
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8.0, y(part * top) + 4.0,
                       grouped(std::llround(part * top)));
  }
  std::string path;
  std::string marks;
  for (const TunePoint& point : curve) {
    const double at_x = x(point.learners);
    const double at_y = y(point.images_per_second);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at_x, at_y);
    const bool is_chosen = point.learners == result.chosen.front();
    marks += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>\n",
                         is_chosen ? "chosen" : "point", at_x, at_y, is_chosen ? 6 : 4);
    marks += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", at_x, kBottom + 20.0,
                         point.learners);
  }
  return svg + fmt::format("<path class=\"curve\" d=\"{}\"/>\n{}</svg>\n", path, marks);
}

}  // namespace arbalest::jobs
