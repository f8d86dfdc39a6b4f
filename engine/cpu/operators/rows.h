// Sums over the rows of a matrix [rows, columns].
#pragma once

#include <cstdint>

namespace arbalest::engine::cpu {

// For less work than this, synchronizing threads costs more than the rows.
inline int threads_for_rows(int threads, std::int64_t rows, std::int64_t columns) {
  return rows * columns < 16384 ? 1 : threads;
}

// Sixteen partial sums in fixed order allow vectors and keep results reproducible.
inline constexpr std::int64_t kSumLanes = 16;

// Returns the sum over c of a_c b_c.
inline float dot(const float* a, const float* b, std::int64_t count) {
  float lanes[kSumLanes] = {};
  for (std::int64_t c = 0; c < count; ++c) lanes[c % kSumLanes] += a[c] * b[c];
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace arbalest::engine::cpu
