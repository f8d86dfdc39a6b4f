// Charts as SVG, readable on light and on dark ground.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

struct ChartPoint {
  double x = 0.0;
  double y = 0.0;
  bool marked = false;  // stands out
  // The range that y is the middle of, if it has one.
  std::optional<double> least = {};
  std::optional<double> most = {};
};

// How the ranges of a series are drawn.
enum class ChartRanges {
  kNone,
  kBand,     // an area behind the curve
  kWhiskers  // a line at each point
};

struct ChartSeries {
  int color = 0;         // any number not below 0: also the dashes and the dots, which tell series apart in print
  bool dots = false;     // at points; else at marked ones only
  int dot_interval = 1;  // from one point that has a dot to the next
  ChartRanges ranges = ChartRanges::kNone;
  double shift = 0.0;     // of everything to the right, in pixels, so that series do not hide each other
  std::string name = {};  // for the legend
  std::vector<ChartPoint> points;
};

struct ChartTick {
  double at = 0.0;
  std::string text;
};

struct ChartAxis {
  std::string title;
  double from = 0.0;
  double to = 1.0;  // above `from`
  std::vector<ChartTick> ticks;
  bool logarithmic = false;  // `from` is then above 0
};

struct LineChart {
  std::string title;
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartSeries> series;
  std::optional<double> level;  // y of a dashed line
  bool legend = false;          // the names of the series, below the chart
};

struct ChartBar {
  std::string name;
  std::vector<double> parts;  // stacked from the left, not below 0; part i has color i
};

struct BarChart {
  std::string title;
  std::string unit;
  std::vector<ChartBar> bars;
};

// "<svg ...>...</svg>", to stand in a page with chart_style() in its head.
std::string to_svg(const LineChart& chart);
std::string to_svg(const BarChart& chart);
// Two of the above, a chart of lines each, as one.
std::string side_by_side(const std::string& left, const std::string& right);
// A chart as a file of its own.
std::string as_document(const std::string& svg);
// CSS: what the classes in a chart look like; class "sN" has color N.
const char* chart_style();

// From `from` or a little below to `to` or a little above, where the outer ticks are.
ChartAxis linear_axis(std::string title, double from, double to, const std::function<std::string(double)>& text);
// Powers of two from 1 to `to`, logarithmic.
ChartAxis doubling_axis(std::string title, double to);
// "1,234", "12.5", "0.05"
std::string tick_text(double value);
// "12.5 %" of 0.125
std::string percent_tick_text(double fraction);

// For the text and the attributes of XML and HTML.
std::string escaped(std::string_view text);
// The class of a color: "s3"; colors come again after the eighth, with other dashes and dots.
std::string color_class(int color);
// "<svg ...>...</svg>": a piece of a curve and a dot as series of that color have them, for a legend.
std::string series_key(int color);

}  // namespace arbalest::jobs
