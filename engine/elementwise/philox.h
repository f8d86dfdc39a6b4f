// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
// Four random words are a function of a counter and a key, so any element of any mask can be computed at any time.
#pragma once

#include <cstdint>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

struct PhiloxCounter {
  std::uint32_t words[4];
};

struct PhiloxKey {
  std::uint32_t words[2];
};

ARBALEST_HOST_DEVICE PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * counter.words[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * counter.words[2];
    counter = {
        {static_cast<std::uint32_t>(second >> 32) ^ counter.words[1] ^ key.words[0], static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ counter.words[3] ^ key.words[1], static_cast<std::uint32_t>(first)}};
    key.words[0] += 0x9E3779B9U;
    key.words[1] += 0xBB67AE85U;
  }
  return counter;
}

// Uses of the generator outside of layers take layer numbers that no model reaches (compare dropout.h).
inline constexpr std::uint32_t kAugmentationLayer = 0xFFFFFFFFU;
inline constexpr std::uint32_t kCropLayer = kAugmentationLayer - 1;  // for the first attempt; later attempts use the
                                                                     // numbers below
inline constexpr std::uint32_t kCropAttempts = 10;

// Four words for example `row` of mini-batch `task`.
ARBALEST_HOST_DEVICE PhiloxCounter random_of_row(std::uint64_t seed, std::uint64_t task, std::uint32_t row,
                                                 std::uint32_t layer) {
  return philox({{row, layer, static_cast<std::uint32_t>(task), static_cast<std::uint32_t>(task >> 32)}},
                {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}});
}

// Uniform in [0, bound), from a random word.
ARBALEST_HOST_DEVICE std::int32_t uniform(std::uint32_t word, std::int32_t bound) {
  return static_cast<std::int32_t>(std::uint64_t{word} * static_cast<std::uint32_t>(bound) >> 32);
}

// Uniform in [0, 1), from a random word.
ARBALEST_HOST_DEVICE float unit(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1.0p-24F; }

}  // namespace arbalest::engine::elementwise
