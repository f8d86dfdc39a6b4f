// The dynamic shared memory of one block.
#pragma once

#include <cstddef>
#include <vector>

namespace arbalest::tests::cuda_stand_in {

class DynamicMemory {
 public:
  // Filled with the bytes of a NaN.
  explicit DynamicMemory(std::size_t bytes);

  std::size_t bytes() const { return bytes_; }
  std::byte* data() const { return data_; }
  // Whether nothing has written behind it.
  bool is_guard_whole() const;

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* data_;  // inside memory_
};

}  // namespace arbalest::tests::cuda_stand_in
