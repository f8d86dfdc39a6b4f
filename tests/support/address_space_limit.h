// A limit on this process's memory.
#pragma once

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace arbalest::tests {

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
