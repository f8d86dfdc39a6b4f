#include "jobs/study/bench/bench_page.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "jobs/messages/text.h"
#include "jobs/study/bench/bench_charts.h"
#include "jobs/study/bench/bench_report.h"
#include "jobs/study/bench/bench_statistics.h"
#include "jobs/study/bench/bench_tables.h"
#include "jobs/study/svg_chart.h"

namespace arbalest::jobs {

namespace {

constexpr const char* kPageStyle =
    "body{font:15px/1.5 sans-serif;max-width:1400px;margin:2em auto;padding:0 1em;background:Canvas;color:CanvasText}\n"
    "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em}\n"
    "table{border-collapse:collapse;font-size:13px}th:first-child,td:first-child{text-align:left}\n"
    "th,td{padding:.25em .5em;text-align:right;border-bottom:1px solid GrayText;font-variant-numeric:tabular-nums}\n"
    "td{white-space:nowrap}td:first-child,.runs td:nth-child(3){white-space:normal;min-width:12em}\n"
    ".wide{overflow-x:auto}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,520px),1fr));gap:1em}\n"
    "figure{margin:0;border:1px solid GrayText;border-radius:6px;padding:.5em}figure>svg{width:100%;height:auto}\n"
    "@media(max-width:620px){svg.chart text{font-size:17px}}\n"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:.3em 1.5em;padding:0 1em;margin:.3em 0}"
    ".legend i{display:inline-block;width:1em;height:.7em;margin-right:.5em;background:var(--c)}"
    ".legend .key{width:3.5em;height:.75em;margin-right:.5em}\n"
    ".bad{font-weight:bold}code,pre{font-family:monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere}\n";

struct Name {
  int color = 0;
  std::string text;
};

// `key_of`: returns the legend's picture for a color.
std::string figure(const std::string& svg, const std::vector<Name>& names, std::string (*key_of)(int)) {
  std::string html = "<figure>\n" + svg + "<ul class=\"legend\">\n";
  for (const Name& name : names) html += fmt::format("<li>{}{}</li>\n", key_of(name.color), escaped(name.text));
  return html + "</ul>\n</figure>\n";
}

std::string figure(LineChart chart) {
  std::vector<Name> names;
  for (const ChartSeries& series : chart.series) names.push_back({series.color, series.name});
  chart.legend = false;  // the page has the legend as text
  return figure(to_svg(chart), names, series_key);
}

std::string bar_key(int color) { return fmt::format("<i class=\"{}\"></i>", color_class(color)); }

// One curve per run.
std::string time_chart(const BenchResult& result) {
  LineChart chart{
      .title = accuracy_title(result) + " over time", .x = {}, .y = {}, .series = {}, .level = result.plan.target};
  double most_x = 0.0;
  double least_y = chart.level.value_or(1.0);
  double most_y = chart.level.value_or(0.0);
  for (const BenchRun& run : result.runs) {
    ChartSeries series{.color = static_cast<int>(run.case_index), .name = {}, .points = {}};
    for (const BenchEpoch& row : run.rows) {
      const bool reaches = run.outcome == BenchOutcome::kReached && &row == &run.rows.back();
      series.points.push_back({row.elapsed_seconds, row.decisive_accuracy(), reaches});
      most_x = std::max(most_x, row.elapsed_seconds);
      least_y = std::min(least_y, row.decisive_accuracy());
      most_y = std::max(most_y, row.decisive_accuracy());
    }
    chart.series.push_back(std::move(series));
  }
  chart.x = linear_axis("seconds since the start of the run", 0.0, most_x, tick_text);
  chart.y = linear_axis(result.plan.accuracy_text(), std::min(least_y, most_y), most_y, percent_tick_text);
  std::vector<Name> names;
  for (const BenchCase& of : result.plan.cases) names.push_back({static_cast<int>(names.size()), of.name});
  return figure(to_svg(chart), names, series_key);
}

// Uses the runs that the tables count: a curve through the medians at equal numbers of learners.
std::string throughput_chart(const BenchResult& result) {
  std::vector<Name> names;
  std::map<std::string, std::map<int, std::vector<double>>> rates;
  double most_rate = 0.0;
  double most_learners = 1.0;
  for (const BenchRun& run : result.runs) {
    if (!run.is_measured() || run.images_per_second <= 0.0) continue;
    const std::string& series = result.plan.cases[run.case_index].series_name;
    if (!rates.contains(series)) names.push_back({static_cast<int>(names.size()), series});
    rates[series][run.learners].push_back(run.images_per_second);
    most_rate = std::max(most_rate, run.images_per_second);
    most_learners = std::max(most_learners, static_cast<double>(run.learners));
  }
  LineChart chart{.title = "Throughput over learners (medians)",
                  .x = doubling_axis("learners, of all devices", most_learners),
                  .y = linear_axis("images/s", 0.0, most_rate, tick_text),
                  .series = {},
                  .level = {}};
  for (const Name& name : names) {
    ChartSeries series{.color = name.color, .dots = true, .name = name.text, .points = {}};
    for (const auto& [learners, of] : rates[name.text]) {
      series.points.push_back({static_cast<double>(learners), *spread_of(of).median});
    }
    chart.series.push_back(std::move(series));
  }
  return figure(std::move(chart));
}

// If every run was traced, the training time is divided by what the learners do.
std::string phase_chart(const BenchResult& result) {
  std::vector<BenchPhases> phases;
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) phases.push_back(summarize(runs_of(result, i)).phases);
  const bool divided = std::ranges::all_of(phases, [](const BenchPhases& of) { return of.working.has_value(); });
  BarChart chart{.title = "Where the time goes (means over the runs of a job)", .unit = "s", .bars = {}};
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const BenchPhases& of = phases[i];
    const double waits = of.averaging_wait.value_or(0.0);
    std::vector<double> parts = {of.preparation, of.training, of.evaluation, of.other};
    if (divided) {
      const double idle = std::max(0.0, of.training - *of.working - waits);
      parts = {of.preparation, *of.working, waits, idle, of.evaluation, of.other};
    }
    chart.bars.push_back({result.plan.cases[i].name, parts});
  }
  std::vector<std::string> parts = {"preparation: data, plans, learners", "training", "evaluation", "other"};
  if (divided) {
    parts = {parts[0],
             "training: learners work",
             "training: they wait for averaging",
             "training: they have no work",
             parts[2],
             parts[3]};
  }
  std::vector<Name> names;
  for (const std::string& part : parts) names.push_back({static_cast<int>(names.size()), part});
  return figure(to_svg(chart), names, bar_key);
}

std::string row_of(const std::vector<std::string>& cells, const char* tag) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) html += fmt::format("<{0}>{1}</{0}>", tag, escaped(cell));
  return html + "</tr>\n";
}

// Returns "" if there are no rows.
std::string table_of(const TableRows& rows, const char* css_class = "wide") {
  if (rows.empty()) return "";
  std::string html = fmt::format("<div class=\"{}\"><table>\n{}", css_class, row_of(rows.front(), "th"));
  for (std::size_t i = 1; i < rows.size(); ++i) html += row_of(rows[i], "td");
  return html + "</table></div>\n";
}

std::string charts_of(const BenchResult& result) {
  std::string html = "<h2>Charts</h2>\n<p>Over time, a curve for each run";
  if (result.plan.target) html += "; the dashed line is the target, a ring the evaluation that reached it";
  html += ".</p>\n<div class=\"charts\">\n" + figure(accuracy_over_epochs(result));
  if (auto chart = accuracy_over_learners(result)) html += figure(std::move(*chart));
  return html + time_chart(result) + throughput_chart(result) + phase_chart(result) + "</div>\n";
}

std::string how_it_ended(const BenchResult& result) {
  if (result.signal != 0) return "<p class=\"bad\">The bench was stopped before all of its runs had ended.</p>\n";
  if (result.ended() == static_cast<int>(result.runs.size())) return "";
  return fmt::format("<p class=\"bad\">{} of {} runs have ended; the bench goes on, or was killed.</p>\n",
                     result.ended(), result.runs.size());
}

}  // namespace

std::string load_text(const LoadAverage& load) {
  return load.empty() ? "unknown" : fmt::format("{:.2f}", fmt::join(load, ", "));
}

std::string bench_title(const BenchResult& result) {
  return result.plan.target
             ? fmt::format("Time to {} {}", target_percent(*result.plan.target), result.plan.accuracy_text())
             : accuracy_title(result);
}

std::string to_page(const BenchResult& result) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<title>{0}</title>\n<style>\n{1}{2}</style>\n</head>\n<body>\n"
      "<h1>{0}</h1>\n{3}<p>{4}. {5} {6}</p>\n<pre>{7}</pre>\n",
      bench_title(result), chart_style(), kPageStyle, how_it_ended(result), escaped(result.started),
      escaped(table_notes(result)), escaped(resumption_notes(result)), escaped(result.command));
  html += table_of(time_rows(result)) + "<h2>Accuracy</h2>\n" + table_of(accuracy_rows(result));
  const TableRows epochs = epoch_rows(result, true);
  if (!epochs.empty()) html += fmt::format("<h2>{} after epochs, %</h2>\n", accuracy_title(result)) + table_of(epochs);
  html += charts_of(result);
  html += "<h2>Runs</h2>\n<p>In the order in which they ran.</p>\n" + table_of(run_rows(result), "wide runs");
  html += fmt::format(
      "<h2>Machine</h2>\n<p>Load averages of 1, 5 and 15 minutes: {} before the first run, {} after the last.</p>\n"
      "<pre>{}</pre>\n</body>\n</html>\n",
      load_text(result.load_at_begin), load_text(result.load_at_end),
      escaped(result.machine.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
  return html;
}

}  // namespace arbalest::jobs
