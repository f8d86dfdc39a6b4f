#include "study/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include "messages/text.h"
#include "messages/text_encoding.h"

namespace arbalest::jobs {

namespace {

constexpr double kWidth = 660.0;
constexpr double kLeft = 100.0;  // leaves room for "1,000,000" beside the title of the axis
constexpr double kRight = 640.0;
constexpr double kTop = 40.0;
constexpr double kBottom = 320.0;
constexpr double kHeight = 380.0;

// Colors on light background. Viewers that do not know CSS variables get them as attributes, which CSS overrides.
constexpr std::array kLightColors = {"#0072b2", "#b84a00", "#007a5a", "#a8457f",
                                     "#8a6d00", "#666666", "#6b4fa3", "#2b7fb8"};
constexpr int kColors = static_cast<int>(kLightColors.size());

// Colors that can be distinguished with any color vision (Okabe and Ito 2008); lighter on dark background.
constexpr const char* kStyle =
    ":root{color-scheme:light dark;--c0:#0072b2;--c1:#b84a00;--c2:#007a5a;--c3:#a8457f;"
    "--c4:#8a6d00;--c5:#666;--c6:#6b4fa3;--c7:#2b7fb8}\n"
    "@media(prefers-color-scheme:dark){:root{--c0:#5ab4f0;--c1:#f08a3c;--c2:#2fc79a;--c3:#e08bbd;--c4:#e6c229;"
    "--c5:#aaa;--c6:#b39ddb;--c7:#8fd0f5}}\n"
    "svg.chart{background:Canvas}svg.chart text{fill:CanvasText}svg.chart .axis{stroke:GrayText;fill:none}"
    "svg.chart .grid{stroke:GrayText;stroke-opacity:.25}"
    "svg.chart .level{stroke:CanvasText;stroke-dasharray:6 4}svg.chart .curve{fill:none;stroke-width:2;"
    "stroke-linejoin:round}\n"
    ".s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}.s5{--c:var(--c5)}"
    ".s6{--c:var(--c6)}.s7{--c:var(--c7)}svg.chart .curve{stroke:var(--c)}svg.chart circle,"
    "svg.chart polygon,svg.chart .band{fill:var(--c)}svg.chart .band{fill-opacity:.14}"
    "svg.chart .whisker{stroke:var(--c);stroke-width:1.5;fill:none}"
    "svg.chart .marked{stroke:CanvasText;stroke-width:2}\n";

constexpr double kLegendPitch = 20.0;
constexpr double kKeyWidth = 56.0;

const char* light_color(int color) { return kLightColors[static_cast<std::size_t>(color % kColors)]; }

// 1, 2 or 5 times a power of ten, for about five steps.
double nice_step(double range) {
  const double rough = range / 5.0;
  const double unit = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * unit * 1.001) return factor * unit;
  }
  return 10.0 * unit;
}

// Positions of values between the two ends of an axis.
class Scale {
 public:
  Scale(const ChartAxis& axis, double least, double most) : is_logarithmic_(axis.scale == ChartScale::kDoubling) {
    if (is_logarithmic_) {
      to_ = std::max(most, 2.0);
      for (double at = 1.0; at <= to_; at *= 2.0) ticks.push_back({at, tick_text(at)});
      return;
    }
    if (least > most) least = 0.0;  // no points
    if (!(most > least)) most = least + 1.0;
    const double step = nice_step(most - least);
    const double first = std::floor(least / step + 1e-9);
    const double last = std::ceil(most / step - 1e-9);
    from_ = first * step;
    to_ = last * step;
    for (double i = first; i <= last; ++i) {
      const bool is_percent = axis.scale == ChartScale::kPercent;
      ticks.push_back({i * step, is_percent ? tick_text(100.0 * i * step) + " %" : tick_text(i * step)});
    }
  }

  // 0 at the begin of the axis, 1 at its end.
  double share(double value) const {
    if (is_logarithmic_) return std::log(value / from_) / std::log(to_ / from_);
    return (value - from_) / (to_ - from_);
  }

  struct Tick {
    double at = 0.0;
    std::string text;
  };
  std::vector<Tick> ticks;

 private:
  bool is_logarithmic_;
  double from_ = 1.0;
  double to_ = 1.0;
};

std::string opening(const std::string& title, double height) {
  return fmt::format(
      "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"13\" role=\"img\">\n<title>{}</title>\n<text x=\"16\" y=\"22\" font-weight=\"bold\">{}</text>\n",
      kWidth, height, escaped(title), escaped(title));
}

// The dashes as an attribute. Five kinds of dashes and seven of dots distinguish 35 series without color.
std::string dashes_of(int color) {
  constexpr std::array<const char*, 5> kDashes = {"", "9 4", "2 4", "9 4 2 4", "18 4"};
  const char* dashes = kDashes[static_cast<std::size_t>(color) % kDashes.size()];
  return *dashes == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
}

// A regular polygon, or a star with a notch behind each of its points.
struct DotShape {
  int points = 0;  // 0: a circle
  double turn = 0.0;
  double notch = 1.0;  // radius of the notches relative to the points
};

std::string dot(int color, bool marked, double x, double y) {
  constexpr double kHalfTurn = std::numbers::pi;
  constexpr std::array<DotShape, 7> kShapes = {DotShape{},    {4, kHalfTurn / 4.0},     {3}, {4}, {3, kHalfTurn},
                                               {5, 0.0, 0.4}, {4, kHalfTurn / 4.0, 0.3}};
  const std::string look = color_class(color) + (marked ? " marked" : "");
  const std::string fallback =
      fmt::format("fill=\"{}\"{}", light_color(color), marked ? " stroke=\"#000\" stroke-width=\"2\"" : "");
  const double radius = marked ? 5.0 : 4.0;
  const DotShape& shape = kShapes[static_cast<std::size_t>(color) % kShapes.size()];
  if (shape.points == 0) {
    return fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" {}/>\n", look, x, y, radius,
                       fallback);
  }
  const double reach = (shape.notch < 1.0 ? 1.5 : 1.25) * radius;  // otherwise it would look smaller than a circle
  std::string points;
  const auto add = [&](double angle, double distance) {
    points += fmt::format("{}{:.1f},{:.1f}", points.empty() ? "" : " ", x + distance * std::sin(angle),
                          y - distance * std::cos(angle));
  };
  for (int i = 0; i < shape.points; ++i) {
    const double step = 2.0 * kHalfTurn / shape.points;
    add(shape.turn + step * i, reach);
    if (shape.notch < 1.0) add(shape.turn + step * (i + 0.5), shape.notch * reach);
  }
  return fmt::format("<polygon class=\"{}\" points=\"{}\" {}/>\n", look, points, fallback);
}

std::string curve(int color, const std::string& path) {
  return fmt::format("<path class=\"curve {}\"{} d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n",
                     color_class(color), dashes_of(color), path, light_color(color));
}

class Drawing {
 public:
  explicit Drawing(const LineChart& chart) : chart_(chart), x_(scale(chart.x, false)), y_(scale(chart.y, true)) {}

  std::string svg() const {
    const double legend = chart_.legend ? kLegendPitch * static_cast<double>(chart_.series.size()) + 8.0 : 0.0;
    std::string svg = opening(chart_.title, kHeight + legend) + axes();
    for (const ChartSeries& series : chart_.series) {
      if (series.ranges == ChartRanges::kBand) svg += band(series);
    }
    if (chart_.level) {
      svg += fmt::format("<path class=\"level\" d=\"M{} {:.1f}H{}\" stroke=\"#000\" stroke-dasharray=\"6 4\"/>\n",
                         kLeft, y_of(*chart_.level), kRight);
    }
    for (const ChartSeries& series : chart_.series) svg += whiskers(series) + curve_and_dots(series);
    double y = kHeight + 4.0;
    for (const ChartSeries& series : chart_.series) {
      if (!chart_.legend) break;
      svg += curve(series.color, fmt::format("M16 {:.1f}h{}", y, kKeyWidth)) +
             dot(series.color, false, 16.0 + kKeyWidth / 2.0, y);
      svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\">{}</text>\n", 24.0 + kKeyWidth, y + 4.0, escaped(series.name));
      y += kLegendPitch;
    }
    return svg + "</svg>\n";
  }

 private:
  Scale scale(const ChartAxis& axis, bool is_y) const {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    const auto add = [&](std::optional<double> value) {
      if (!value) return;
      least = std::min(least, *value);
      most = std::max(most, *value);
    };
    for (const ChartSeries& series : chart_.series) {
      for (const ChartPoint& point : series.points) {
        add(is_y ? point.y : point.x);
        if (is_y) add(point.least), add(point.most);
      }
    }
    if (is_y) add(chart_.level);
    add(axis.also);
    return {axis, least, most};
  }

  double x_of(double value) const { return kLeft + (kRight - kLeft) * x_.share(value); }
  double y_of(double value) const { return kBottom - (kBottom - kTop) * y_.share(value); }

  std::string axes() const {
    std::string svg;
    for (const Scale::Tick& tick : y_.ticks) {
      const double y = y_of(tick.at);
      svg += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\" stroke=\"#888\" stroke-opacity=\"0.25\"/>\n", kLeft,
                         y, kRight);
      svg +=
          fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8.0, y + 4.0, tick.text);
    }
    for (const Scale::Tick& tick : x_.ticks) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(tick.at),
                         kBottom + 20.0, tick.text);
    }
    return svg + fmt::format(
                     "<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\" stroke=\"#888\" fill=\"none\"/>\n"
                     "<text x=\"{4}\" y=\"{5}\" text-anchor=\"middle\">{6}</text>\n"
                     "<text transform=\"translate(16 {7}) rotate(-90)\" text-anchor=\"middle\">{8}</text>\n",
                     kLeft, kTop, kBottom, kRight, (kLeft + kRight) / 2.0, kBottom + 44.0, escaped(chart_.x.title),
                     (kTop + kBottom) / 2.0, escaped(chart_.y.title));
  }

  // A path along the upper ends of the ranges and back along the lower ends; points without a range are skipped.
  std::string band(const ChartSeries& series) const {
    std::string forth;
    std::string back;
    for (const ChartPoint& point : series.points) {
      if (!point.least || !point.most) continue;
      const double x = x_of(point.x) + series.shift;
      forth += fmt::format("{}{:.1f} {:.1f}", forth.empty() ? "M" : "L", x, y_of(*point.most));
      back.insert(0, fmt::format("L{:.1f} {:.1f}", x, y_of(*point.least)));
    }
    return forth.empty() ? ""
                         : fmt::format("<path class=\"band {}\" d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.14\"/>\n",
                                       color_class(series.color), forth, back, light_color(series.color));
  }

  std::string whiskers(const ChartSeries& series) const {
    constexpr double kHalfCap = 4.0;
    std::string svg;
    for (const ChartPoint& point : series.points) {
      if (series.ranges != ChartRanges::kWhiskers || !point.least || !point.most) continue;
      const double x = x_of(point.x) + series.shift;
      svg += fmt::format(
          "<path class=\"whisker {0}\" d=\"M{1:.1f} {3:.1f}H{2:.1f}M{5:.1f} {3:.1f}V{4:.1f}M{1:.1f} {4:.1f}H{2:.1f}\" "
          "fill=\"none\" stroke=\"{6}\" stroke-width=\"1.5\"/>\n",
          color_class(series.color), x - kHalfCap, x + kHalfCap, y_of(*point.least), y_of(*point.most), x,
          light_color(series.color));
    }
    return svg;
  }

  std::string curve_and_dots(const ChartSeries& series) const {
    constexpr std::size_t kMostDots = 12;
    const std::size_t interval =
        series.ranges == ChartRanges::kBand ? (series.points.size() + kMostDots - 1) / kMostDots : 1;
    const bool has_dots = series.dots || series.points.size() == 1;  // one point makes no curve
    std::string path;
    std::string marks;
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const ChartPoint& point = series.points[i];
      const double x = x_of(point.x) + series.shift;
      const double y = y_of(point.y);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
      if (point.marked || (has_dots && i % interval == 0)) marks += dot(series.color, point.marked, x, y);
    }
    return path.empty() ? "" : curve(series.color, path) + marks;
  }

  const LineChart& chart_;
  const Scale x_;
  const Scale y_;
};

}  // namespace

const char* chart_style() { return kStyle; }

std::string to_svg(const LineChart& chart) { return Drawing(chart).svg(); }

std::string side_by_side(const std::string& left, const std::string& right) {
  const auto placed = [](const std::string& svg, double x) {
    constexpr std::string_view kTag = "<svg";
    return fmt::format("{} x=\"{}\" width=\"{}\" height=\"{}\"{}", kTag, x, kWidth, kHeight, svg.substr(kTag.size()));
  };
  return fmt::format("<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\">\n{}{}</svg>\n",
                     2.0 * kWidth, kHeight, placed(left, 0.0), placed(right, kWidth));
}

std::string as_document(const std::string& svg) {
  const std::size_t end = svg.find('>');
  return fmt::format("{}>\n<style>\n{}</style>{}", svg.substr(0, end), kStyle, svg.substr(end + 1));
}

std::string tick_text(double value) {
  if (std::abs(value) >= 1000.0) return grouped(std::llround(value));
  return fmt::format("{:.4g}", std::abs(value) < 1e-9 ? 0.0 : value);
}

std::string escaped(std::string_view text) { return safe_text(text, TextFor::kHtml); }

std::string series_key(int color) {
  return fmt::format(
      "<svg class=\"chart key\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 56 12\" aria-hidden=\"true\">\n{}{}"
      "</svg>",
      curve(color, fmt::format("M0 6H{}", kKeyWidth)), dot(color, false, kKeyWidth / 2.0, 6.0));
}

std::string color_class(int color) { return fmt::format("s{}", color % kColors); }

}  // namespace arbalest::jobs
