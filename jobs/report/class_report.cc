#include "jobs/report/class_report.h"

#include <vector>

#include <fmt/format.h>

#include "jobs/messages/text.h"
#include "jobs/report/json.h"

namespace arbalest::jobs {

namespace {

constexpr std::int64_t kMostColumns = 20;  // a wider matrix does not fit a terminal

std::string percent_or_none(const std::optional<double>& fraction) { return fraction ? percent(*fraction) : "-"; }

// The class that examples of `label` are most often mistaken for: "7 (12)"; "" if none is mistaken.
std::string most_mistaken(const ClassScores& scores, std::int64_t label) {
  std::int64_t most = 0;
  std::int64_t mistaken_for = 0;
  for (std::int64_t c = 0; c < scores.classes(); ++c) {
    if (c == label || scores.count(label, c) <= most) continue;
    most = scores.count(label, c);
    mistaken_for = c;
  }
  return most == 0 ? "" : fmt::format("{} ({})", mistaken_for, grouped(most));
}

std::string class_table(const ClassScores& scores) {
  std::vector<std::vector<std::string>> rows = {{"class", "examples", "accuracy", "precision", "most mistaken for"}};
  for (std::int64_t c = 0; c < scores.classes(); ++c) {
    rows.push_back({fmt::format("{}", c), grouped(scores.examples(c)), percent_or_none(scores.accuracy(c)),
                    percent_or_none(scores.precision(c)), most_mistaken(scores, c)});
  }
  return table(rows, 0);
}

std::string matrix_table(const ClassScores& scores) {
  std::vector<std::vector<std::string>> rows = {{"label"}};
  for (std::int64_t c = 0; c < scores.classes(); ++c) rows.front().push_back(fmt::format("{}", c));
  for (std::int64_t label = 0; label < scores.classes(); ++label) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(fmt::format("{}", label));
    for (std::int64_t c = 0; c < scores.classes(); ++c) row.push_back(fmt::format("{}", scores.count(label, c)));
  }
  return table(rows, 0);
}

}  // namespace

std::string class_report(const ClassScores& scores) {
  std::string text = class_table(scores);
  if (scores.classes() <= kMostColumns) {
    text += "\nconfusion matrix: examples by label (row) and predicted class (column)\n" + matrix_table(scores);
  }
  return text;
}

nlohmann::ordered_json to_json(const ClassScores& scores) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::array();
  nlohmann::ordered_json matrix = nlohmann::ordered_json::array();
  for (std::int64_t label = 0; label < scores.classes(); ++label) {
    classes.push_back({{"class", label},
                       {"examples", scores.examples(label)},
                       {"accuracy", null_unless_set(scores.accuracy(label))},
                       {"precision", null_unless_set(scores.precision(label))}});
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (std::int64_t c = 0; c < scores.classes(); ++c) row.push_back(scores.count(label, c));
    matrix.push_back(std::move(row));
  }
  return {{"per_class", classes}, {"confusion_matrix", matrix}};
}

}  // namespace arbalest::jobs
