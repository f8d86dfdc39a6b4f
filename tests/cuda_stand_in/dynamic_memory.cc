#include "tests/cuda_stand_in/dynamic_memory.h"

#include <algorithm>
#include <cstdint>

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr std::size_t kAlignment = 128;
constexpr std::size_t kGuard = 256;
constexpr std::byte kFill{0xFF};

}  // namespace

DynamicMemory::DynamicMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes > 0) memory_.assign(bytes + kAlignment + kGuard, kFill);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
  data_ = memory_.data() + (kAlignment - address % kAlignment) % kAlignment;
}

bool DynamicMemory::is_guard_whole() const {
  if (bytes_ == 0) return true;
  return std::all_of(data_ + bytes_, data_ + bytes_ + kGuard, [](std::byte byte) { return byte == kFill; });
}

}  // namespace arbalest::tests::cuda_stand_in
