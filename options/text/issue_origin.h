// Finds the cause of a mistake in a job: its file or one of its --set options.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "dataflow/models/fields/field_issues.h"
#include "options/text/overrides.h"

namespace arbalest::jobs {

class IssueOrigin {
 public:
  // Returns the mistakes (key_of) in the file's job, changed by these settings.
  using FindWrong = std::function<std::set<std::string>(std::span<const std::string> settings)>;
  // Tells a mistake from others at the same path, but not from itself with other numbers.
  static std::string key_of(const dataflow::FieldIssue& issue);

  // `applied`: the result of applying all `settings`. Both must outlive this object.
  IssueOrigin(std::span<const std::string> settings, const Overrides& applied, FindWrong find_wrong)
      : settings_(settings), applied_(applied), find_wrong_(std::move(find_wrong)), wrong_(settings.size()) {}

  // Returns the setting that causes the mistake: the one that set its field or a message around it, or the last one
  // without which the mistake was not there. If that is a later one, the two contradict each other, and both are
  // returned: "training.batch_size=64 --set learners.per_device.fixed=900". "" if the file alone causes the mistake.
  std::string setting_for(const dataflow::FieldIssue& issue);

 private:
  // Returns the number of the last setting without which the mistake was not there.
  std::optional<std::size_t> cause_of(const dataflow::FieldIssue& issue);

  std::span<const std::string> settings_;
  const Overrides& applied_;
  FindWrong find_wrong_;
  std::vector<std::optional<std::set<std::string>>> wrong_;  // by number of settings that are applied
};

}  // namespace arbalest::jobs
