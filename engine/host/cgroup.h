// Limits that the process's control groups (version 1 or 2) set, as containers and batch systems do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace arbalest::engine::host {

struct CgroupLimits {
  std::optional<double> cores;  // smallest CPU quota of all enclosing groups, in cores
  // Smallest (limit - use) of all enclosing groups, in bytes; reclaimable file cache counts as unused.
  std::optional<std::uint64_t> memory_unused;
};

// `root`: prefix of the files' paths, for tests. A file that is missing or unreadable sets no limit, nor does a memory
// limit beyond the machine's memory.
CgroupLimits read_cgroup_limits(const std::string& root = "");

// The files cpu.stat of all enclosing groups, which tell for how long a CPU quota held their threads.
std::vector<std::string> cgroup_quota_files(const std::string& root = "");
// Seconds for which the quota of such a file's group has held threads; 0 if the file is unreadable.
double read_throttled_seconds(const std::string& path);

}  // namespace arbalest::engine::host
