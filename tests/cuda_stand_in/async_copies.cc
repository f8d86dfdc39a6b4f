#include "tests/cuda_stand_in/async_copies.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "tests/cuda_stand_in/fibers.h"
#include "tests/cuda_stand_in/memory.h"
#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

void AsyncCopies::begin(void* to, const void* from, std::size_t bytes) {
  Copy copy{to, from, bytes, groups_, {}};
  if (random_below(2) == 0) {
    std::memcpy(copy.bytes_read.data(), from, bytes);
    copy.from = nullptr;
  }
  std::memset(to, 0xFF, bytes);
  copies_.push_back(copy);
}

void AsyncCopies::wait(std::size_t pending) {
  std::erase_if(copies_, [&](const Copy& copy) {
    if (copy.group + pending >= groups_) return false;
    std::memcpy(copy.to, copy.from == nullptr ? copy.bytes_read.data() : copy.from, copy.bytes);
    return true;
  });
}

bool AsyncCopies::clear() {
  const bool none = copies_.empty();
  copies_.clear();
  groups_ = 0;
  return none;
}

void begin_copy(void* to, const void* from, std::size_t bytes, int line) {
  const auto refuse = [&](const char* reason) {
    violation(fmt::format("a kernel: the copy_async in line {} {}", line, reason));
  };
  const auto is_aligned = [&](const void* address) { return reinterpret_cast<std::uintptr_t>(address) % bytes == 0; };
  if (!is_aligned(to) || !is_aligned(from)) return refuse("is not aligned to the size of a copy");
  if (!is_in_shared_memory(to, bytes)) return refuse("does not write shared memory of the block");
  if (find_memory(from).bytes_after < bytes) return refuse("does not read device memory");
  copies_of_thread().begin(to, from, bytes);
}

void commit_copies() { copies_of_thread().commit(); }

void wait_for_copies(std::size_t pending) { copies_of_thread().wait(pending); }

}  // namespace arbalest::tests::cuda_stand_in
