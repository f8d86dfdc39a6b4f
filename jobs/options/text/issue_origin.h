// Finds the cause of a mistake in a job: its file or one of its --set options.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jobs/options/text/overrides.h"

namespace arbalest::jobs {

class IssueOrigin {
 public:
  // Returns the paths that are wrong in the file's job, changed by these settings.
  using FindWrong = std::function<std::set<std::string>(std::span<const std::string> settings)>;

  // `applied`: the result of applying all `settings`. Both must outlive this object.
  IssueOrigin(std::span<const std::string> settings, const Overrides& applied, FindWrong find_wrong)
      : settings_(settings), applied_(applied), find_wrong_(std::move(find_wrong)), wrong_(settings.size()) {}

  // Returns the setting that causes the mistake at `path`: the one that set that field or a message around it; else the
  // last setting without which nothing was wrong there. Null if the file alone causes it.
  const std::string* setting_for(const std::string& path);

 private:
  std::span<const std::string> settings_;
  const Overrides& applied_;
  FindWrong find_wrong_;
  std::vector<std::optional<std::set<std::string>>> wrong_;  // by number of settings that are applied
};

}  // namespace arbalest::jobs
