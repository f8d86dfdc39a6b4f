// The addresses of many vectors, one per replica, as one kernel argument.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/error.h"
#include "engine/elementwise/averaging.h"

namespace arbalest::engine::cuda {

// Kernel arguments may have 4 KB. Most launches need few addresses, so there are two sizes.
inline constexpr std::size_t kSmallGroup = 32;
inline constexpr std::size_t kLargestGroup = 448;

template <std::size_t capacity>
struct VectorGroup {
  static constexpr int kLevels = capacity == kSmallGroup ? 4 : 7;  // levels of the tree over groups of kSumGroup
  static_assert(capacity <= std::size_t{elementwise::kSumGroup} * ((std::size_t{1} << kLevels) - 1));

  const float* addresses[capacity];
  std::int32_t count;
};

template <std::size_t capacity>
VectorGroup<capacity> make_group(std::span<const float* const> vectors) {
  VectorGroup<capacity> group{};
  std::copy(vectors.begin(), vectors.end(), group.addresses);
  group.count = static_cast<std::int32_t>(vectors.size());
  return group;
}

// Calls launch_with(VectorGroup<capacity>) with the smallest capacity that holds all vectors; throws kDevice if there
// are too many vectors.
template <typename Launch>
void with_group(std::span<const float* const> vectors, const Launch& launch_with) {
  if (vectors.size() > kLargestGroup) {
    fail(ErrorKind::kDevice, "{} learners on one GPU, but it averages at most {}; set fewer learners per device",
         vectors.size(), kLargestGroup);
  }
  if (vectors.size() <= kSmallGroup) {
    launch_with(make_group<kSmallGroup>(vectors));
  } else {
    launch_with(make_group<kLargestGroup>(vectors));
  }
}

}  // namespace arbalest::engine::cuda
