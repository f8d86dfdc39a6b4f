// Numbers of learners that `arbalest tune` found fastest, kept for later runs of the same work on the same devices,
// which begin their search there. Runs themselves remember nothing: what they find while other work goes on beside them
// is theirs alone.
//
// A file for each answer, in one directory, named after all that the answer depends on: throughput_key() of the job,
// the objective of its search unless that is throughput, the devices it computes on (processor and cores, or GPU), and
// the versions of the program and its libraries. It is written whole or not at all, and what is found in it is only
// ever where a search begins.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "jobs/options/job_options.h"

namespace arbalest::jobs {

class LearnerCache {
 public:
  // The directory need not exist. `program_version`: answers of other versions are not found.
  LearnerCache(std::filesystem::path directory, std::string program_version);

  const std::filesystem::path& directory() const noexcept { return directory_; }
  // Where the answer for `job` lies, or would. Throws as engine::find_cuda_device does.
  std::filesystem::path file_of(const JobOptions& job) const;

  // Learners by device of the job; none if nothing is remembered. A file that is damaged, foreign, or cannot be read is
  // removed, so that it is met once, and `warnings` gets a line that names it; what cannot be removed, such as a
  // directory, is ignored with such a line each time.
  std::optional<std::vector<int>> find(const JobOptions& job, std::vector<std::string>& warnings) const;

  // Replaces whatever is there. Makes the directory where there is none. Throws as fail_write does
  // (jobs/export/atomic_file.h).
  void remember(const JobOptions& job, const std::vector<int>& learners_per_device, double images_per_second) const;

 private:
  nlohmann::ordered_json key_of(const JobOptions& job) const;
  std::filesystem::path file_of(const nlohmann::ordered_json& key) const;

  std::filesystem::path directory_;
  std::string program_version_;
};

}  // namespace arbalest::jobs
