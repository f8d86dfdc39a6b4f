// Draws charts of the program's own results as SVG, readable on light and dark background. bench/figures/chart.py draws
// figures of results pages, whose rows come from several programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace arbalest::jobs {

struct ChartPoint {
  double x = 0.0;
  double y = 0.0;
  bool marked = false;  // whether the point stands out
  // The range around y, if there is one.
  std::optional<double> least = {};
  std::optional<double> most = {};
};

// The ranges of a series are drawn in one of these ways.
enum class ChartRanges {
  kNone,
  kBand,     // an area behind the curve
  kWhiskers  // a line at each point
};

struct ChartSeries {
  // Any number not below 0. It also selects dashes and dots, which distinguish series in print.
  int color = 0;
  bool dots = false;  // draws dots at the points, not only at marked ones; at most twelve or so on a band
  ChartRanges ranges = ChartRanges::kNone;
  double shift = 0.0;     // shifts the series to the right, in pixels, so that series do not hide each other
  std::string name = {};  // for the legend
  std::vector<ChartPoint> points = {};
};

enum class ChartScale {
  kLinear,
  kPercent,  // of fractions
  kDoubling  // logarithmic from 1 on, with powers of two
};

// It shows all points, ranges and the level, and ends at ticks.
struct ChartAxis {
  std::string title;
  ChartScale scale = ChartScale::kLinear;
  std::optional<double> also = {};  // a further value that it shows
};

struct LineChart {
  std::string title;
  ChartAxis x;
  ChartAxis y;
  std::vector<ChartSeries> series = {};
  std::optional<double> level = {};  // y of a horizontal dashed line
  bool legend = false;               // whether the names of the series are shown below the chart
};

// Returns "<svg ...>...</svg>", for a page with chart_style() in its head.
std::string to_svg(const LineChart& chart);
// Joins two charts made by to_svg().
std::string side_by_side(const std::string& left, const std::string& right);
// Turns a chart into a file of its own.
std::string as_document(const std::string& svg);
// CSS for the classes in a chart; class "sN" has color N.
const char* chart_style();

// "1,234", "12.5", "0.05"
std::string tick_text(double value);
// Escapes text for XML and HTML, including attributes.
std::string escaped(std::string_view text);
// The class of a color: "s3". After the eighth, colors repeat with other dashes and dots.
std::string color_class(int color);
// Returns "<svg ...>...</svg>" for a legend: a piece of a curve with a dot, as a series of that color is drawn.
std::string series_key(int color);

}  // namespace arbalest::jobs
