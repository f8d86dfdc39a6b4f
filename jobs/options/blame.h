// Where a mistake in a job comes from: its file or a --set.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "jobs/options/overrides.h"

namespace arbalest::jobs {

class Blame {
 public:
  // Paths at which the job of the file, changed by these settings, is wrong.
  using FindWrong = std::function<std::set<std::string>(std::span<const std::string> settings)>;

  // `applied`: all `settings`. It and they must outlive this.
  Blame(std::span<const std::string> settings, const Overrides& applied, FindWrong find_wrong)
      : settings_(settings), applied_(applied), find_wrong_(std::move(find_wrong)), wrong_(settings.size()) {}

  // Where something is wrong at `path` with all settings: the one that set the field there or a message around it; else
  // the last one without which nothing was wrong there yet; null if the file alone is to blame.
  const std::string* setting_for(const std::string& path);

 private:
  std::span<const std::string> settings_;
  const Overrides& applied_;
  FindWrong find_wrong_;
  std::vector<std::optional<std::set<std::string>>> wrong_;  // by number of settings that are applied
};

}  // namespace arbalest::jobs
