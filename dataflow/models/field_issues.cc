#include "dataflow/models/field_issues.h"

namespace arbalest::dataflow {

void FieldIssues::add(std::string path, std::string message) {
  if (message.empty() || !paths_.insert(path).second) return;
  issues_.push_back({std::move(path), std::move(message)});
}

void FieldIssues::add_another(std::string path, std::string message) {
  paths_.insert(path);
  issues_.push_back({std::move(path), std::move(message)});
}

}  // namespace arbalest::dataflow
