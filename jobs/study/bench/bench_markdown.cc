#include "jobs/study/bench/bench_markdown.h"

#include <string_view>

#include <fmt/format.h>

#include "jobs/messages/text_encoding.h"
#include "jobs/study/bench/bench_charts.h"
#include "jobs/study/bench/bench_page.h"
#include "jobs/study/bench/bench_report.h"
#include "jobs/study/bench/bench_tables.h"

namespace arbalest::jobs {

namespace {

std::string cell(std::string_view text) { return safe_text(text, TextFor::kMarkdown); }

std::string line_of(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + cell(text) + " |";
  return line + "\n";
}

// Aligns the first column left and the others right. Returns "" if there are no rows.
std::string table_of(const TableRows& rows) {
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
  text += table_of(time_rows(result)) + "## Accuracy\n\n" + table_of(accuracy_rows(result));
  const TableRows epochs = epoch_rows(result, true);
  const std::string accuracy = accuracy_title(result);
  if (!epochs.empty()) text += fmt::format("## {} after epochs, %\n\n{}", accuracy, table_of(epochs));
  text += fmt::format("## Charts\n\n![{} over epochs]({})\n\n", accuracy, kEpochChart);
  if (accuracy_over_learners(result)) text += fmt::format("![Test accuracy over learners]({})\n\n", kLearnerChart);
  text += "## Runs\n\n" + table_of(run_rows(result));
  text += fmt::format(
      "## Machine\n\n{}. Load averages of 1, 5 and 15 minutes: {} before the first run, {} after the last.\n",
      cell(machine_text(result)), load_text(result.load_at_begin), load_text(result.load_at_end));
  return text;
}

}  // namespace arbalest::jobs
