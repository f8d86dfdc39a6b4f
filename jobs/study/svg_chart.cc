#include "jobs/study/svg_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "jobs/messages/text.h"
#include "jobs/messages/text_encoding.h"

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
    ".s6{--c:var(--c6)}.s7{--c:var(--c7)}svg.chart .curve{stroke:var(--c)}svg.chart circle,svg.chart rect,"
    "svg.chart polygon,svg.chart .band{fill:var(--c)}svg.chart .band{fill-opacity:.14}"
    "svg.chart .whisker{stroke:var(--c);stroke-width:1.5;fill:none}"
    "svg.chart .marked{stroke:CanvasText;stroke-width:2}\n";

// Position of a value on an axis of length 1.
double share(const ChartAxis& axis, double value) {
  if (axis.logarithmic) return std::log(value / axis.from) / std::log(axis.to / axis.from);
  return (value - axis.from) / (axis.to - axis.from);
}

const char* light_color(int color) { return kLightColors[static_cast<std::size_t>(color % kColors)]; }

// Geometry of the legend, below the titles of the axes.
constexpr double kLegendTop = kHeight + 4.0;
constexpr double kLegendPitch = 20.0;
constexpr double kKeyWidth = 56.0;

double x_of(const ChartAxis& axis, double value) { return kLeft + (kRight - kLeft) * share(axis, value); }
double y_of(const ChartAxis& axis, double value) { return kBottom - (kBottom - kTop) * share(axis, value); }

std::string opening(const std::string& title, double height) {
  return fmt::format(
      "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" "
      "font-size=\"13\" role=\"img\">\n<title>{}</title>\n<text x=\"{}\" y=\"22\" font-weight=\"bold\">{}</text>\n",
      kWidth, height, escaped(title), 16.0, escaped(title));
}

std::string axes_of(const LineChart& chart) {
  std::string svg;
  for (const ChartTick& tick : chart.y.ticks) {
    const double y = y_of(chart.y, tick.at);
    svg += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\" stroke=\"#888\" stroke-opacity=\"0.25\"/>\n", kLeft, y,
                       kRight);
    svg += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", kLeft - 8.0, y + 4.0,
                       escaped(tick.text));
  }
  for (const ChartTick& tick : chart.x.ticks) {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x_of(chart.x, tick.at),
                       kBottom + 20.0, escaped(tick.text));
  }
  svg += fmt::format("<path class=\"axis\" d=\"M{0} {1}V{2}H{3}\" stroke=\"#888\" fill=\"none\"/>\n", kLeft, kTop,
                     kBottom, kRight);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (kLeft + kRight) / 2.0,
                     kBottom + 44.0, escaped(chart.x.title));
  svg += fmt::format("<text transform=\"translate(16 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     (kTop + kBottom) / 2.0, escaped(chart.y.title));
  return svg;
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

// A path along the upper ends of the ranges and back along the lower ends; points without a range are skipped.
std::string band_of(const LineChart& chart, const ChartSeries& series) {
  std::string forth;
  std::string back;
  for (const ChartPoint& point : series.points) {
    if (!point.least || !point.most) continue;
    const double x = x_of(chart.x, point.x) + series.shift;
    forth += fmt::format("{}{:.1f} {:.1f}", forth.empty() ? "M" : "L", x, y_of(chart.y, *point.most));
    back.insert(0, fmt::format("L{:.1f} {:.1f}", x, y_of(chart.y, *point.least)));
  }
  return forth.empty() ? ""
                       : fmt::format("<path class=\"band {}\" d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.14\"/>\n",
                                     color_class(series.color), forth, back, light_color(series.color));
}

std::string whiskers_of(const LineChart& chart, const ChartSeries& series) {
  constexpr double kHalfCap = 4.0;
  std::string svg;
  for (const ChartPoint& point : series.points) {
    if (!point.least || !point.most) continue;
    const double x = x_of(chart.x, point.x) + series.shift;
    const double bottom = y_of(chart.y, *point.least);
    const double top = y_of(chart.y, *point.most);
    svg += fmt::format(
        "<path class=\"whisker {0}\" d=\"M{1:.1f} {3:.1f}H{2:.1f}M{5:.1f} {3:.1f}V{4:.1f}M{1:.1f} {4:.1f}H{2:.1f}\" "
        "fill=\"none\" stroke=\"{6}\" stroke-width=\"1.5\"/>\n",
        color_class(series.color), x - kHalfCap, x + kHalfCap, bottom, top, x, light_color(series.color));
  }
  return svg;
}

std::string series_of(const LineChart& chart, const ChartSeries& series) {
  std::string path;
  std::string marks;
  int number = 0;
  const bool has_dots = series.dots || series.points.size() == 1;  // one point makes no curve
  for (const ChartPoint& point : series.points) {
    const double x = x_of(chart.x, point.x) + series.shift;
    const double y = y_of(chart.y, point.y);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    const bool has_dot = has_dots && number++ % series.dot_interval == 0;
    if (has_dot || point.marked) marks += dot(series.color, point.marked, x, y);
  }
  if (path.empty()) return "";
  const std::string whiskers = series.ranges == ChartRanges::kWhiskers ? whiskers_of(chart, series) : "";
  return whiskers + curve(series.color, path) + marks;
}

// Lays out names in one column if one of them is long, else in two.
struct LegendLayout {
  explicit LegendLayout(const LineChart& chart) {
    constexpr std::size_t kLongName = 32;
    if (!chart.legend) return;
    const auto is_long = [](const ChartSeries& series) { return series.name.size() > kLongName; };
    columns = std::ranges::any_of(chart.series, is_long) ? 1 : 2;
    rows = (chart.series.size() + columns - 1) / columns;
  }
  double height() const { return rows == 0 ? 0.0 : kLegendPitch * static_cast<double>(rows) + 8.0; }

  std::size_t columns = 1;
  std::size_t rows = 0;
};

std::string legend_of(const LineChart& chart, const LegendLayout& layout) {
  std::string svg;
  for (std::size_t i = 0; i < chart.series.size() && layout.rows > 0; ++i) {
    const std::size_t column = i / layout.rows;
    const std::size_t row = i % layout.rows;
    const double x = 16.0 + kWidth / 2.0 * static_cast<double>(column);
    const double y = kLegendTop + kLegendPitch * static_cast<double>(row);
    svg += curve(chart.series[i].color, fmt::format("M{:.1f} {:.1f}h{}", x, y, kKeyWidth)) +
           dot(chart.series[i].color, false, x + kKeyWidth / 2.0, y);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + kKeyWidth + 8.0, y + 4.0,
                       escaped(chart.series[i].name));
  }
  return svg;
}

// 1, 2 or 5 times a power of ten, for about five steps.
double nice_step(double range) {
  const double rough = range / 5.0;
  const double unit = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * unit * 1.001) return factor * unit;
  }
  return 10.0 * unit;
}

}  // namespace

const char* chart_style() { return kStyle; }

std::string to_svg(const LineChart& chart) {
  const LegendLayout legend(chart);
  std::string svg = opening(chart.title, kHeight + legend.height()) + axes_of(chart);
  for (const ChartSeries& series : chart.series) {
    if (series.ranges == ChartRanges::kBand) svg += band_of(chart, series);
  }
  if (chart.level) {
    svg += fmt::format("<path class=\"level\" d=\"M{} {:.1f}H{}\" stroke=\"#000\" stroke-dasharray=\"6 4\"/>\n", kLeft,
                       y_of(chart.y, *chart.level), kRight);
  }
  for (const ChartSeries& series : chart.series) svg += series_of(chart, series);
  return svg + legend_of(chart, legend) + "</svg>\n";
}

std::string to_svg(const BarChart& chart) {
  constexpr double kBarTop = 44.0;
  constexpr double kBarPitch = 46.0;
  constexpr double kBarHeight = 18.0;
  constexpr double kBarLeft = 16.0;
  double most = 0.0;
  for (const ChartBar& bar : chart.bars) {
    double sum = 0.0;
    for (const double part : bar.parts) sum += part;
    most = std::max(most, sum);
  }
  const double scale = most > 0.0 ? (kRight - kBarLeft - 80.0) / most : 0.0;
  std::string svg = opening(chart.title, kBarTop + kBarPitch * static_cast<double>(chart.bars.size()));
  double y = kBarTop;
  for (const ChartBar& bar : chart.bars) {
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kBarLeft, y + 10.0, escaped(bar.name));
    double x = kBarLeft;
    double sum = 0.0;
    for (std::size_t i = 0; i < bar.parts.size(); ++i) {
      const double width = scale * bar.parts[i];
      svg += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"/>\n",
                         color_class(static_cast<int>(i)), x, y + 16.0, width, kBarHeight,
                         light_color(static_cast<int>(i)));
      x += width;
      sum += bar.parts[i];
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\">{} {}</text>\n", x + 6.0, y + 30.0, tick_text(sum),
                       escaped(chart.unit));
    y += kBarPitch;
  }
  return svg + "</svg>\n";
}

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

ChartAxis linear_axis(std::string title, double from, double to, const std::function<std::string(double)>& text) {
  if (!(to > from)) to = from + 1.0;
  const double step = nice_step(to - from);
  const double first = std::floor(from / step + 1e-9);
  const double last = std::ceil(to / step - 1e-9);
  ChartAxis axis{.title = std::move(title), .from = first * step, .to = last * step, .ticks = {}};
  for (double i = first; i <= last; ++i) axis.ticks.push_back({i * step, text(i * step)});
  return axis;
}

ChartAxis doubling_axis(std::string title, double to) {
  ChartAxis axis{.title = std::move(title), .from = 1.0, .to = std::max(to, 2.0), .ticks = {}, .logarithmic = true};
  for (double at = 1.0; at <= axis.to; at *= 2.0) axis.ticks.push_back({at, tick_text(at)});
  return axis;
}

std::string tick_text(double value) {
  if (std::abs(value) >= 1000.0) return grouped(std::llround(value));
  return fmt::format("{:.4g}", std::abs(value) < 1e-9 ? 0.0 : value);
}

std::string percent_tick_text(double fraction) { return tick_text(100.0 * fraction) + " %"; }

std::string escaped(std::string_view text) { return safe_text(text, TextFor::kHtml); }

std::string series_key(int color) {
  return fmt::format(
      "<svg class=\"chart key\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 56 12\" aria-hidden=\"true\">\n{}{}"
      "</svg>",
      curve(color, fmt::format("M0 6H{}", kKeyWidth)), dot(color, false, kKeyWidth / 2.0, 6.0));
}

std::string color_class(int color) { return fmt::format("s{}", color % kColors); }

}  // namespace arbalest::jobs
