#include "study/bench/bench_page.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "messages/text.h"
#include "messages/text_encoding.h"
#include "study/bench/bench_charts.h"
#include "study/bench/bench_report.h"
#include "study/bench/bench_statistics.h"
#include "study/bench/bench_tables.h"
#include "study/svg_chart.h"

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
    ".bar{display:flex;height:18px;margin-bottom:.7em}.bar i,.legend i{background:var(--c)}"
    ".legend i{display:inline-block;width:1em;height:.7em;margin-right:.5em}"
    ".legend .key{width:3.5em;height:.75em;margin-right:.5em}\n"
    ".bad{font-weight:bold}code,pre{font-family:monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere}\n";

// A color of the charts, and what has it.
struct Name {
  int color = 0;
  std::string text;
};

std::string figure(const std::string& drawing, const std::vector<Name>& names, std::string (*key_of)(int)) {
  std::string html = "<figure>\n" + drawing + "<ul class=\"legend\">\n";
  for (const Name& name : names) html += fmt::format("<li>{}{}</li>\n", key_of(name.color), escaped(name.text));
  return html + "</ul>\n</figure>\n";
}

// The page has the legend as text.
std::string figure(LineChart chart) {
  std::vector<Name> names;
  for (const ChartSeries& series : chart.series) {
    if (!series.name.empty()) names.push_back({series.color, series.name});
  }
  chart.legend = false;
  return figure(to_svg(chart), names, series_key);
}

std::string bar_key(int color) { return fmt::format("<i class=\"{}\"></i>", color_class(color)); }

// One curve per run.
std::string time_chart(const BenchResult& result) {
  LineChart chart{.title = accuracy_title(result) + " over time",
                  .x = {"seconds since the start of the run", ChartScale::kLinear, 0.0},
                  .y = {result.plan.accuracy_text(), ChartScale::kPercent},
                  .level = result.plan.target};
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) {  // a legend also for cases without runs
    chart.series.push_back({.color = static_cast<int>(i), .name = result.plan.cases[i].name});
  }
  for (const BenchRun& run : result.runs) {
    ChartSeries& series = chart.series.emplace_back(ChartSeries{.color = static_cast<int>(run.case_index)});
    for (const BenchEpoch& row : run.rows) {
      const bool reaches = run.outcome == BenchOutcome::kReached && &row == &run.rows.back();
      series.points.push_back({row.elapsed_seconds, row.decisive_accuracy(), reaches});
    }
  }
  return figure(std::move(chart));
}

// Uses the runs that the tables count: a curve through the medians at equal numbers of learners.
std::string throughput_chart(const BenchResult& result) {
  std::vector<std::string> names;  // in the order of the runs
  std::map<std::string, std::map<int, std::vector<double>>> rates;
  for (const BenchRun& run : result.runs) {
    if (!run.is_measured() || run.images_per_second <= 0.0) continue;
    const std::string& series = result.plan.cases[run.case_index].series_name;
    if (!rates.contains(series)) names.push_back(series);
    rates[series][run.learners].push_back(run.images_per_second);
  }
  LineChart chart{.title = "Throughput over learners (medians)",
                  .x = {"learners, of all devices", ChartScale::kDoubling},
                  .y = {"images/s", ChartScale::kLinear, 0.0}};
  for (const std::string& name : names) {
    const int color = static_cast<int>(chart.series.size());
    ChartSeries& series = chart.series.emplace_back(ChartSeries{.color = color, .dots = true, .name = name});
    for (const auto& [learners, of] : rates[name]) {
      series.points.push_back({static_cast<double>(learners), *spread_of(of).median});
    }
  }
  return figure(std::move(chart));
}

// A bar for each case. If every run was traced, the training time is divided by what the learners do.
std::string phase_chart(const BenchResult& result) {
  std::vector<BenchPhases> phases;
  for (std::size_t i = 0; i < result.plan.cases.size(); ++i) phases.push_back(summarize(runs_of(result, i)).phases);
  const bool divided = std::ranges::all_of(phases, [](const BenchPhases& of) { return of.working.has_value(); });
  std::vector<std::vector<double>> bars;
  double most = 0.0;
  for (const BenchPhases& of : phases) {
    const double waits = of.averaging_wait.value_or(0.0);
    bars.push_back({of.preparation, of.training, of.evaluation, of.other});
    if (divided) {
      const double idle = std::max(0.0, of.training - *of.working - waits);
      bars.back() = {of.preparation, *of.working, waits, idle, of.evaluation, of.other};
    }
    most = std::max(most, std::reduce(bars.back().begin(), bars.back().end()));
  }
  std::string html = "<b>Where the time goes (means over the runs of a job)</b>\n";
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double sum = std::reduce(bars[i].begin(), bars[i].end());
    html += fmt::format("<div>{}: {} s</div><div class=\"bar\" style=\"width:{:.1f}%\">",
                        escaped(result.plan.cases[i].name), tick_text(sum), most > 0.0 ? 100.0 * sum / most : 0.0);
    for (int part = 0; const double seconds : bars[i]) {
      html += fmt::format("<i class=\"{}\" style=\"width:{:.2f}%\"></i>", color_class(part++),
                          sum > 0.0 ? 100.0 * seconds / sum : 0.0);
    }
    html += "</div>\n";
  }
  const std::vector<Name> whole = {
      {0, "preparation: data, plans, learners"}, {1, "training"}, {2, "evaluation"}, {3, "other"}};
  const std::vector<Name> parts = {{0, whole[0].text},
                                   {1, "training: learners work"},
                                   {2, "training: they wait for averaging"},
                                   {3, "training: they have no work"},
                                   {4, whole[2].text},
                                   {5, whole[3].text}};
  return figure(html, divided ? parts : whole, bar_key);
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

namespace {

std::string cell(std::string_view text) { return safe_text(text, TextFor::kMarkdown); }

std::string line_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + cell(text) + " |";
  return line + "\n";
}

// Aligns the first column left and the others right. Returns "" if there are no rows.
std::string markdown_table(const TableRows& rows) {
  if (rows.empty()) return "";
  std::string text = line_of(rows.front()) + "|---|";
  for (std::size_t i = 1; i < rows.front().size(); ++i) text += "---:|";
  text += "\n";
  for (std::size_t i = 1; i < rows.size(); ++i) text += line_of(rows[i]);
  return text + "\n";
}

std::string machine_text(const BenchResult& result) {
  std::string text;
  for (const char* name : {"processor", "usable_cores", "operating_system", "source_commit"}) {
    if (!result.machine.contains(name)) continue;
    const auto& value = result.machine.at(name);
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace

std::string to_markdown(const BenchResult& result) {
  std::string text = fmt::format("# {}\n\n", cell(bench_title(result)));
  text += fmt::format("    {}\n\n", printable(result.command));
  text += fmt::format("Begun {}; status: {}, {} of {} runs. {}\n\n", cell(result.started), status_of(result),
                      result.ended(), result.runs.size(), cell(table_notes(result)));
  if (!result.resumptions.empty()) text += cell(resumption_notes(result)) + "\n\n";
  text += markdown_table(time_rows(result)) + "## Accuracy\n\n" + markdown_table(accuracy_rows(result));
  const TableRows epochs = epoch_rows(result, true);
  const std::string accuracy = accuracy_title(result);
  if (!epochs.empty()) text += fmt::format("## {} after epochs, %\n\n{}", accuracy, markdown_table(epochs));
  text += fmt::format("## Charts\n\n![{} over epochs]({})\n\n", accuracy, kEpochChart);
  if (accuracy_over_learners(result)) text += fmt::format("![Test accuracy over learners]({})\n\n", kLearnerChart);
  text += "## Runs\n\n" + markdown_table(run_rows(result));
  text += fmt::format(
      "## Machine\n\n{}. Load averages of 1, 5 and 15 minutes: {} before the first run, {} after the last.\n",
      cell(machine_text(result)), load_text(result.load_at_begin), load_text(result.load_at_end));
  return text;
}

}  // namespace arbalest::jobs
