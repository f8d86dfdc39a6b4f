// Vectorized access: a thread loads or stores a group of neighboring elements, 16 bytes per instruction. A larger group
// takes several instructions.
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/cuda/kernels/block.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

// Number of elements in 16 bytes, the most that one instruction moves.
template <typename T>
inline constexpr int kWide = 16 / static_cast<int>(sizeof(T));
inline constexpr int kWideFloats = kWide<float>;

// The values of a group in registers, as float32.
template <int kNumbers>
struct Floats {
  float at[kNumbers];
};

template <int kNumbers>
__device__ Floats<kNumbers> operator+(const Floats<kNumbers>& a, const Floats<kNumbers>& b) {
  Floats<kNumbers> sum;
  for (int k = 0; k < kNumbers; ++k) sum.at[k] = a.at[k] + b.at[k];
  return sum;
}

// A group as stored in memory.
template <typename T, int kNumbers>
struct alignas(sizeof(T) * kNumbers <= 16 ? sizeof(T) * kNumbers : 16) Pack {
  T at[kNumbers];
};

// Loads elements [kNumbers * group, kNumbers * (group + 1)) as float32. The tensor must be aligned to the group's size,
// at most 16 bytes.
template <int kNumbers, typename T>
__device__ Floats<kNumbers> load_group(const T* tensor, std::int64_t group) {
  const auto pack = reinterpret_cast<const Pack<T, kNumbers>*>(tensor)[group];
  Floats<kNumbers> values;
  for (int k = 0; k < kNumbers; ++k) values.at[k] = elementwise::load(pack.at[k]);
  return values;
}

template <int kNumbers, typename T>
__device__ void store_group(const Floats<kNumbers>& values, T* tensor, std::int64_t group) {
  Pack<T, kNumbers> pack;
  for (int k = 0; k < kNumbers; ++k) elementwise::store(values.at[k], pack.at[k]);
  reinterpret_cast<Pack<T, kNumbers>*>(tensor)[group] = pack;
}

// Grid size of a kernel that calls for_groups<kNumbers>(elements).
template <int kNumbers>
std::int64_t blocks_for_groups(std::int64_t elements) {
  return blocks_for((elements + kNumbers - 1) / kNumbers);
}

// Grid-stride loop: calls body(std::integral_constant<int, n>(), group) for the groups of this thread. n is kNumbers.
// For the elements after the last whole group, n is 1 and `group` is the element's index.
template <int kNumbers, typename Body>
__device__ void for_groups(std::int64_t elements, const Body& body) {
  const std::int64_t groups = elements / kNumbers;
  for (std::int64_t g = first_element(); g < groups; g += element_step()) {
    body(std::integral_constant<int, kNumbers>(), g);
  }
  const std::int64_t i = groups * kNumbers + first_element();
  if (i < elements) body(std::integral_constant<int, 1>(), i);
}

}  // namespace arbalest::engine::cuda
