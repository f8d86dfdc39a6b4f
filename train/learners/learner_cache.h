// Numbers of learners that `arbalest tune` found fastest. A later run of the same work on the same devices begins its
// search there. Runs store nothing themselves, because other work on the machine may have disturbed what they find.
//
// The cache is one directory with one file per answer. The file is named after everything that the answer depends on:
// throughput_key() of the job, the objective of its search unless that is throughput, the devices (processor and cores,
// or GPU), and the versions of the program and its libraries. A file is written whole or not at all. Its content only
// ever decides where a search begins.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "options/job_options.h"

namespace arbalest::jobs {

class LearnerCache {
 public:
  // The directory need not exist. `program_version`: answers of other versions are ignored.
  LearnerCache(std::filesystem::path directory, std::string program_version);

  const std::filesystem::path& directory() const noexcept { return directory_; }
  // The file with the answer for `job`, whether it exists or not. Throws as engine::find_cuda_device does.
  std::filesystem::path file_of(const JobOptions& job) const;

  // Returns learners by device of the job; none if there is no answer. A file that is damaged, foreign or unreadable is
  // removed, so that it is met once, and a warning names it. If it cannot be removed, as with a directory, it is
  // ignored with a warning each time.
  std::optional<std::vector<int>> find(const JobOptions& job, std::vector<std::string>& warnings) const;

  // Writes the answer, and the directory if there is none. Throws as fail_write does (saved_model/atomic_file.h).
  void remember(const JobOptions& job, const std::vector<int>& learners_per_device, double images_per_second) const;

 private:
  nlohmann::ordered_json key_of(const JobOptions& job) const;
  std::filesystem::path file_of(const nlohmann::ordered_json& key) const;

  std::filesystem::path directory_;
  std::string program_version_;
};

}  // namespace arbalest::jobs
