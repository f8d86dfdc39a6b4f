// The host memory that a process may take for data. Readers ask before they allocate, because a system that runs out of
// memory kills the process without a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace arbalest::engine::host {

class MemoryBudget {
 public:
  // `processes` of this machine share what is free now in equal parts.
  explicit MemoryBudget(int processes = 1);

  // Bytes that may still be taken: what is free (available_memory_bytes), and of several processes no more than this
  // one's part.
  std::size_t left_bytes() const;

  // Throws ErrorKind::kOutOfMemory, with the bytes that are needed and free, if `bytes` more do not fit. A part of the
  // free memory, 1/16 of `bytes` and at most 32 MiB, stays for the rest of the program. `what`: what needs the memory,
  // such as a path; `remedy`: what the user can change.
  void require(std::uint64_t bytes, const std::string& what, std::string_view remedy) const;

 private:
  std::size_t part_;            // free bytes of this process at the start, if it shares them
  std::size_t resident_bytes_;  // that it had then
};

}  // namespace arbalest::engine::host
