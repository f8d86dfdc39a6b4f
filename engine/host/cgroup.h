// Limits that the process's control groups (version 1 or 2) set, as containers and batch systems do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace arbalest::engine::host {

struct CgroupLimits {
  std::optional<double> cores;                 // the smallest CPU quota on the way up, in cores
  std::optional<std::uint64_t> memory_unused;  // the smallest limit - use, in bytes; reclaimable file cache is unused
};

// Files are looked for under `root`, which tests replace. A file that is missing or unreadable sets no limit; nor does
// a memory limit beyond the machine's memory.
CgroupLimits read_cgroup_limits(const std::string& root = "");

}  // namespace arbalest::engine::host
