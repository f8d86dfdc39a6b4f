#include "train/data/class_table.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/error.h"
#include "messages/class_order.h"
#include "messages/text.h"
#include "messages/text_encoding.h"
#include "train/data/class_names.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

std::string shown(const std::string& name) { return shortened(printable(name)); }

// "the folders of photos/train", "photos/classes.txt"
std::string origin_of(const DataOptions& data, const std::string& data_root) {
  const std::string path = class_names_path(data, data_root).string();
  return data.kind == DataOptions::Kind::kImages ? "the folders of " + path : path;
}

void check_order(const ClassTable& table, const DataOptions& data, const std::string& data_root) {
  if (!is_other_order(table.names, table.in_files)) return;
  throw data.class_names_error(
      fmt::format("class_names are in another order than {}, by which the classes are numbered, so they would name the "
                  "wrong classes: class_names are {}; by number the classes are {}; write them in the order of the "
                  "numbers, or leave class_names out",
                  origin_of(data, data_root), in_order(table.names), in_order(table.in_files)));
}

bool are_just_numbers(const ClassTable& table) {
  if (!table.in_files.empty()) return false;
  for (std::size_t c = 0; c < table.size(); ++c) {
    if (table.names[c] != std::to_string(c)) return false;
  }
  return true;
}

}  // namespace

ClassTable read_class_table(const DataOptions& data, const std::string& data_root, std::vector<std::string>& warnings) {
  ClassTable table{.names = data.class_names, .are_folders = data.kind == DataOptions::Kind::kImages};
  if (table.names.empty()) {
    table.names = table.in_files = class_names_of_files(data, data_root);
  } else {
    // A list beside the data may be wrong, which is why the job names the classes.
    table.in_files = listed_class_names(data, data_root);
    if (table.in_files.size() != table.names.size()) table.in_files.clear();
  }
  check_order(table, data, data_root);
  const std::string origin = origin_of(data, data_root);
  for (const std::string& warning : {numbers_warning(table.in_files, table.names, table.are_folders, origin),
                                     exchange_warning(table.in_files, table.names, origin)}) {
    if (!warning.empty()) warnings.push_back(warning);
  }
  return table;
}

ClassTable find_class_table(const DataOptions& data, const std::string& data_root, std::vector<std::string>& warnings) {
  std::error_code unknown;
  const fs::path path = class_names_path(data, data_root);
  const bool is_there = path.empty() || fs::exists(path, unknown);
  if (is_there) return read_class_table(data, data_root, warnings);
  return {.names = data.class_names};
}

std::string to_line(const ClassTable& table) {
  constexpr std::size_t kMostClasses = 12;
  if (are_just_numbers(table)) return "";
  const std::vector<std::string>& firsts = table.in_files.empty() ? table.names : table.in_files;
  const bool are_renamed = firsts != table.names;
  std::vector<std::string> classes;
  for (std::size_t c = 0; c < std::min(table.size(), kMostClasses); ++c) {
    classes.push_back(
        fmt::format("{}={}{}", c, shown(firsts[c]), are_renamed ? fmt::format(" ({})", shown(table.names[c])) : ""));
  }
  std::string form = are_renamed ? "number=in the list (name)" : "number=name";
  if (table.are_folders && !table.in_files.empty()) form = are_renamed ? "number=folder (name)" : "number=folder";
  return fmt::format("{}, as {}: {}{}", table.size(), form, fmt::join(classes, ", "),
                     table.size() > kMostClasses ? fmt::format(" and {} more", table.size() - kMostClasses) : "");
}

std::string to_text(const ClassTable& table, std::size_t most) {
  if (are_just_numbers(table)) return "";
  const bool has_files = !table.in_files.empty();
  std::vector<std::vector<std::string>> rows = {{"class"}};
  if (has_files) rows.front().push_back(table.are_folders ? "folder" : "in the list");
  rows.front().push_back("name");
  const std::size_t classes = std::min(table.size(), most);
  for (std::size_t c = 0; c < classes; ++c) {
    std::vector<std::string>& row = rows.emplace_back(1, std::to_string(c));
    if (has_files) row.push_back(shown(table.in_files[c]));
    row.push_back(shown(table.names[c]));
  }
  const std::string rest = classes < table.size() ? fmt::format("... and {} more\n", table.size() - classes) : "";
  return jobs::table(rows, rows.front().size()) + rest;
}

void check_class_order(const DataOptions& data, const std::string& data_root, const ModelDescription& description,
                       const std::string& model, std::vector<std::string>& warnings) {
  const std::vector<std::string>& learned = description.class_names;
  const std::vector<std::string> names = listed_class_names(data, data_root);
  if (names.empty() || learned.size() != names.size()) return;
  const std::ptrdiff_t first = first_difference(names, learned);
  if (first < 0) return;
  const bool is_given = !data.class_names.empty();
  const bool is_reordered = is_other_order(names, learned);
  const auto at = static_cast<std::size_t>(first);
  const std::string difference = fmt::format("class {} is '{}' in {}, and '{}' in '{}'", at, shown(names[at]),
                                             origin_of(data, data_root), shown(learned[at]), model);
  if (is_reordered && !is_given) {
    engine::fail(ErrorKind::kData,
                 "{}: these are the same names in another order, so right answers would count as wrong: by number the "
                 "classes are {} in the data, and {} in the model; give the data the names that they had in training",
                 difference, in_order(names), in_order(learned));
  }
  if (is_reordered) {
    warnings.push_back(
        fmt::format("{}: class_names lists the data's names in another order. Scores are right, but printed class "
                    "names are wrong; train again with class_names in the data's order, or remove class_names",
                    difference));
  } else if (!is_given) {
    warnings.push_back(difference + ": if these are other classes, the scores mean nothing");
  }
}

}  // namespace arbalest::jobs
