// Sums one block of many vectors in the order of the pairwise tree of engine/passes/averaging.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/error.h"

namespace arbalest::engine::cpu {

// Number of vectors read at a time: that many streams keep the memory busy. A power of two, so that a group's sum is a
// subtree.
constexpr std::size_t kPairwiseGroup = 4;
// Elements of a block; its partial sums stay in the first- and second-level caches.
constexpr std::int64_t kPairwiseBlock = 2048;

// The sum of `count` values, 1 to 4, in the tree's order.
template <std::size_t count>
inline float sum_of_group(const std::array<float, kPairwiseGroup>& values) {
  if constexpr (count == 1) return values[0];
  if constexpr (count == 2) return values[0] + values[1];
  if constexpr (count == 3) return (values[0] + values[1]) + values[2];
  if constexpr (count == 4) return (values[0] + values[1]) + (values[2] + values[3]);
}

// sum[0, count) = the sum over `vectors` vectors; count <= kPairwiseBlock. add_group(first, size, target) must write
// the sum of vectors [first, first + size), at most kPairwiseGroup of them, to target[0, count).
template <typename AddGroup>
void sum_pairwise(std::size_t vectors, std::int64_t count, float* __restrict sum, const AddGroup& add_group) {
  const std::size_t groups = (vectors + kPairwiseGroup - 1) / kPairwiseGroup;
  const auto size_of = [&](std::size_t group) { return std::min(kPairwiseGroup, vectors - group * kPairwiseGroup); };
  add_group(std::size_t{0}, size_of(0), sum);
  if (groups == 1) return;
  constexpr std::size_t kDepth = 10;  // enough for 2^10 groups
  ARBALEST_CHECK(groups <= std::size_t{1} << kDepth);
  alignas(64) float partial[kDepth][kPairwiseBlock];
  const auto add = [&](float* __restrict left, const float* __restrict right) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) left[i] += right[i];
  };
  // Subtrees of 2^n groups that wait for their right half, largest first; the first of them is `sum`.
  std::array<float*, kDepth + 1> waiting{};
  waiting[0] = sum;
  std::size_t depth = 1;
  for (std::size_t group = 1; group < groups; ++group) {
    waiting[depth] = partial[depth - 1];
    add_group(group * kPairwiseGroup, size_of(group), waiting[depth]);
    ++depth;
    for (std::size_t done = group + 1; done % 2 == 0; done /= 2) {
      add(waiting[depth - 2], waiting[depth - 1]);
      --depth;
    }
  }
  for (; depth > 1; --depth) add(waiting[depth - 2], waiting[depth - 1]);
}

using GroupAddresses = std::array<const float*, kPairwiseGroup>;

// Addresses of element `begin` of vectors [first, first + size); size <= kPairwiseGroup.
inline GroupAddresses group_addresses(std::span<const float* const> vectors, std::size_t first, std::size_t size,
                                      std::int64_t begin) {
  GroupAddresses addresses{};
  for (std::size_t i = 0; i < size; ++i) addresses[i] = vectors[first + i] + begin;
  return addresses;
}

template <std::size_t group>
void add_vectors(const GroupAddresses& vectors, float* __restrict sum, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    std::array<float, kPairwiseGroup> values{};
    for (std::size_t j = 0; j < group; ++j) values[j] = vectors[j][i];
    sum[i] = sum_of_group<group>(values);
  }
}

// sum[0, count) = the sum of the vectors' elements [begin, begin + count); count <= kPairwiseBlock. `sum` must not
// overlap the vectors.
inline void sum_vectors(std::span<const float* const> vectors, std::int64_t begin, std::int64_t count, float* sum) {
  constexpr void (*kAddVectors[kPairwiseGroup])(const GroupAddresses&, float*, std::int64_t) = {
      add_vectors<1>, add_vectors<2>, add_vectors<3>, add_vectors<4>};
  sum_pairwise(vectors.size(), count, sum, [&](std::size_t first, std::size_t size, float* target) {
    kAddVectors[size - 1](group_addresses(vectors, first, size, begin), target, count);
  });
}

}  // namespace arbalest::engine::cpu
