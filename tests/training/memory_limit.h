// Jobs that need much memory, and a limit on the process's memory.
#pragma once

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "tests/training/whole_run.h"

namespace arbalest::tests {

// A job with a dense layer of `units` units; it has 784 times as many weights. It saves no checkpoints, whose copy of
// the state would take memory for a moment.
inline jobs::JobOptions wide_job(std::int64_t units, const std::string& learners) {
  return parse("name: 'wide' model { layers { name: 'd' input: 'image' dense { units: " + std::to_string(units) +
               " } } layers { name: 'logits' input: 'd' dense { units: 10 } }\n"
               "layers { name: 'loss' input: ['logits', 'label'] softmax_cross_entropy {} } }\n"
               "data { digits {} } training { batch_size: 16 max_epochs: 1 } learning_rate { base: 0.01 }\n"
               "checkpoint { keep_last: 0 } devices: 'cpu' learners { per_device { " +
               learners + " } }");
}

inline jobs::JobOptions wide_job(std::int64_t units, int learners) {
  return wide_job(units, "fixed: " + std::to_string(learners));
}

// In its scope, the process's address space may grow by `bytes` only.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(std::int64_t bytes) {
    // Returns freed memory to the system, so that new allocations cannot reuse it.
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    malloc_trim(0);
    std::ifstream file("/proc/self/statm");
    std::int64_t size = 0;
    file >> size;
    mallopt(M_ARENA_MAX, 1);  // otherwise each new thread reserves 64 MiB of addresses or more
    getrlimit(RLIMIT_AS, &before_);
    const rlimit limit{static_cast<rlim_t>(size * sysconf(_SC_PAGESIZE) + bytes), before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpaceLimit(const AddressSpaceLimit&) = delete;
  AddressSpaceLimit& operator=(const AddressSpaceLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace arbalest::tests
