// The copies that a thread of a kernel has begun by cp.async. A copy's target holds the bytes of a NaN until the thread
// has waited for the copy's group.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

class AsyncCopies {
 public:
  // Reads the source either now or when the thread waits, at random: both may happen on a GPU.
  void begin(void* to, const void* from, std::size_t bytes);
  // The copies since the last commit become a group.
  void commit() { ++groups_; }
  // Ends the copies of all groups but the last `pending`.
  void wait(std::size_t pending);
  // Forgets everything. Returns false if there was a copy that the thread has not waited for.
  bool clear();

 private:
  static constexpr std::size_t kMostBytes = 16;
  struct Copy {
    void* to;
    const void* from;  // nullptr: `bytes_read` has the bytes
    std::size_t bytes;
    std::size_t group;
    std::array<std::byte, kMostBytes> bytes_read;
  };

  std::vector<Copy> copies_;
  std::size_t groups_ = 0;  // that were committed
};

// The functions of engine/cuda/kernels/async_copy.h, for the running thread. A copy must be aligned to its size and go
// from device memory to shared memory of the block.
void begin_copy(void* to, const void* from, std::size_t bytes, int line);
void commit_copies();
void wait_for_copies(std::size_t pending);

}  // namespace arbalest::tests::cuda_stand_in
