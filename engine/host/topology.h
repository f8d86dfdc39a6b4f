// The resources of this machine that the process may use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace arbalest::engine::host {

// Cores in the process's affinity mask, ascending.
std::vector<int> allowed_cores();
// min(affinity mask, cgroup quota), at least 1: number of threads that can run at full speed.
int usable_cores();
// min(MemAvailable, cgroup limit - use, RLIMIT_AS).
std::size_t available_memory_bytes();
// "Intel(R) Xeon(R) Processor @ 2.50GHz"
std::string processor_name();
// Instruction sets that matter to the kernels: "avx2", "avx512f", "avx512_bf16", ...
std::vector<std::string> instruction_sets();

}  // namespace arbalest::engine::host
