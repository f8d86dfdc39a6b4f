#include "dataflow/models/fields/field_issues.h"

#include <algorithm>

namespace arbalest::dataflow {

void FieldIssues::add(std::string path, std::string message) {
  if (message.empty() || !paths_.insert(path).second) return;
  issues_.push_back({std::move(path), std::move(message)});
}

void FieldIssues::add_another(std::string path, std::string message) {
  paths_.insert(path);
  issues_.push_back({std::move(path), std::move(message)});
}

bool FieldIssues::has_within(const std::string& path) const {
  return std::ranges::any_of(issues_, [&](const FieldIssue& issue) {
    return issue.path.starts_with(path) &&
           (issue.path.size() == path.size() || issue.path[path.size()] == '.' || issue.path[path.size()] == '[');
  });
}

}  // namespace arbalest::dataflow
