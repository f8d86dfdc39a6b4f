#include "report/class_report.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "messages/text.h"
#include "report/json.h"

namespace arbalest::jobs {

using nlohmann::ordered_json;

namespace {

constexpr std::int64_t kMostColumns = 20;  // a wider matrix does not fit a terminal

using Names = std::span<const std::string>;
using Rows = std::vector<std::vector<std::string>>;

// The name of a class, or its number if it has none.
std::string label_of(std::int64_t c, Names names) {
  return names.empty() ? fmt::format("{}", c) : names[static_cast<std::size_t>(c)];
}

// The class that examples of `label` are most often mistaken for: "dog (12)"; "" if none is mistaken.
std::string most_mistaken(const ClassScores& scores, std::int64_t label, Names names) {
  std::int64_t most = 0;
  std::int64_t mistaken_for = 0;
  for (std::int64_t c = 0; c < scores.classes(); ++c) {
    if (c == label || scores.count(label, c) <= most) continue;
    most = scores.count(label, c);
    mistaken_for = c;
  }
  return most == 0 ? "" : fmt::format("{} ({})", label_of(mistaken_for, names), grouped(most));
}

// Adds a row whose first cells are the number and, if there are names, the name.
void add_row(Rows& rows, std::string first, const std::string* name, std::vector<std::string> cells) {
  std::vector<std::string>& row = rows.emplace_back();
  row.push_back(std::move(first));
  if (name != nullptr) row.push_back(*name);
  row.insert(row.end(), std::make_move_iterator(cells.begin()), std::make_move_iterator(cells.end()));
}

std::string class_table(const ClassScores& scores, Names names) {
  const std::string header = "name";
  const std::string no_name;
  const auto or_null = [&](const std::string& name) { return names.empty() ? nullptr : &name; };
  const auto cells = [](std::int64_t examples, const ClassScore& score, std::string mistaken) {
    return std::vector{grouped(examples), percent(score.precision), percent(score.recall), percent(score.f1),
                       std::move(mistaken)};
  };
  Rows rows;
  add_row(rows, "class", or_null(header), {"examples", "precision", "recall", "F1", "most mistaken for"});
  std::int64_t examples = 0;
  for (std::int64_t c = 0; c < scores.classes(); ++c) {
    add_row(rows, fmt::format("{}", c), names.empty() ? nullptr : &names[static_cast<std::size_t>(c)],
            cells(scores.examples(c), scores.score(c), most_mistaken(scores, c, names)));
    examples += scores.examples(c);
  }
  add_row(rows, "macro mean", or_null(no_name), cells(examples, scores.macro_mean(), ""));
  add_row(rows, "weighted mean", or_null(no_name), cells(examples, scores.weighted_mean(), ""));
  return table(rows, names.empty() ? 1 : 2);
}

// Says which classes have scores that are undefined; "" if none has.
std::string undefined_note(const ClassScores& scores) {
  std::int64_t without_examples = 0;
  std::int64_t never_predicted = 0;
  for (std::int64_t c = 0; c < scores.classes(); ++c) {
    without_examples += scores.examples(c) == 0 ? 1 : 0;
    never_predicted += scores.predictions(c) == 0 ? 1 : 0;
  }
  if (without_examples == 0 && never_predicted == 0) return "";
  return fmt::format(
      "classes without examples: {}, never predicted: {}; their undefined scores count as 0, also in the means\n",
      grouped(without_examples), grouped(never_predicted));
}

std::string matrix_table(const ClassScores& scores, Names names) {
  const std::string header = "name";
  Rows rows;
  std::vector<std::string> numbers;
  for (std::int64_t c = 0; c < scores.classes(); ++c) numbers.push_back(fmt::format("{}", c));
  add_row(rows, "label", names.empty() ? nullptr : &header, numbers);
  for (std::int64_t label = 0; label < scores.classes(); ++label) {
    std::vector<std::string> counts;
    for (std::int64_t c = 0; c < scores.classes(); ++c) counts.push_back(fmt::format("{}", scores.count(label, c)));
    add_row(rows, fmt::format("{}", label), names.empty() ? nullptr : &names[static_cast<std::size_t>(label)],
            std::move(counts));
  }
  return table(rows, names.empty() ? 0 : 2);
}

ordered_json json_of(const ClassScore& score) {
  return {{"precision", score.precision}, {"recall", score.recall}, {"f1", score.f1}};
}

}  // namespace

std::string class_report(const ClassScores& scores, Names names) {
  std::string text = class_table(scores, names) + undefined_note(scores);
  if (scores.classes() <= kMostColumns) {
    text += "\nconfusion matrix: examples by label (row) and predicted class (column)\n" + matrix_table(scores, names);
  }
  return text;
}

ordered_json to_json(const ClassScores& scores, Names names) {
  ordered_json classes = ordered_json::array();
  ordered_json matrix = ordered_json::array();
  for (std::int64_t label = 0; label < scores.classes(); ++label) {
    ordered_json entry = {
        {"class", label},
        {"name", names.empty() ? ordered_json() : ordered_json(names[static_cast<std::size_t>(label)])},
        {"examples", scores.examples(label)},
        {"accuracy", null_unless_set(scores.accuracy(label))}};
    entry.update(json_of(scores.score(label)));
    classes.push_back(std::move(entry));
    ordered_json row = ordered_json::array();
    for (std::int64_t c = 0; c < scores.classes(); ++c) row.push_back(scores.count(label, c));
    matrix.push_back(std::move(row));
  }
  return {{"per_class", classes},
          {"macro_mean", json_of(scores.macro_mean())},
          {"weighted_mean", json_of(scores.weighted_mean())},
          {"confusion_matrix", matrix}};
}

}  // namespace arbalest::jobs
