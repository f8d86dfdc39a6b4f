#include "options/readers/name_reader.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

namespace arbalest::jobs {

namespace {

// Whether `c` is allowed in a job's name: an ASCII letter, a digit, '-', '_' or '.'.
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

}  // namespace

std::string read_name(const v1::Job& job, dataflow::FieldIssues& issues) {
  const std::string& name = job.name();
  if (name.empty() || name[0] == '.' || !std::ranges::all_of(name, is_name_character)) {
    issues.add("name", fmt::format("name becomes the name of a directory: use only letters, digits, '-', '_' and '.', "
                                   "and do not start with '.'; '{}' breaks this rule",
                                   name));
  }
  return name;
}

std::string name_after(const std::string& file) {
  const std::filesystem::path path = std::filesystem::path(file).filename();
  std::string name = path.extension() == ".txtpb" ? path.stem().string() : path.string();
  for (char& c : name) {
    if (!is_name_character(c)) c = '-';
  }
  if (name.empty()) return "job";
  if (name[0] == '.') name[0] = '-';
  return name;
}

}  // namespace arbalest::jobs
