#include "options/text/issue_origin.h"

#include <algorithm>

#include <fmt/format.h>

namespace arbalest::jobs {

std::string IssueOrigin::key_of(const dataflow::FieldIssue& issue) {
  std::string text = issue.message;
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return issue.path + ": " + text;
}

std::optional<std::size_t> IssueOrigin::cause_of(const dataflow::FieldIssue& issue) {
  const std::string key = key_of(issue);
  for (std::size_t count = settings_.size(); count-- > 0;) {
    if (!wrong_[count].has_value()) wrong_[count] = find_wrong_(settings_.first(count));
    if (!wrong_[count]->contains(key)) return count;
  }
  return std::nullopt;
}

std::string IssueOrigin::setting_for(const dataflow::FieldIssue& issue) {
  const std::string* origin = applied_.origin(issue.path);
  const std::optional<std::size_t> cause = cause_of(issue);
  if (origin == nullptr) return cause ? settings_[*cause] : "";
  if (!cause || settings_[*cause] == *origin) return *origin;
  const std::span<const std::string> before = settings_.first(*cause);
  const bool is_later = std::ranges::find(before, *origin) != before.end();
  return is_later ? fmt::format("{} --set {}", *origin, settings_[*cause]) : *origin;
}

}  // namespace arbalest::jobs
