// Division of an index by an extent that only the host knows: a multiplication and a shift instead of about 20
// instructions. Source: T. Granlund and P. Montgomery, Division by Invariant Integers using Multiplication, 1994.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "engine/base/error.h"

namespace arbalest::engine::cuda {

class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    ARBALEST_CHECK(divisor > 0 && divisor <= INT32_MAX);
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    multiplier_ = static_cast<std::uint32_t>((((std::uint64_t{1} << shift_) - divisor_) << 32U) / divisor_ + 1U);
  }

  __host__ __device__ int value() const { return static_cast<int>(divisor_); }
  // The quotient, rounded down; `of` is not negative.
  __host__ __device__ int quotient(int of) const {
    const auto n = static_cast<std::uint32_t>(of);
    const auto high = static_cast<std::uint32_t>((std::uint64_t{n} * multiplier_) >> 32U);
    return static_cast<int>((high + n) >> shift_);
  }

 private:
  std::uint32_t divisor_ = 1;
  std::uint32_t multiplier_ = 1;
  std::uint32_t shift_ = 0;
};

}  // namespace arbalest::engine::cuda
