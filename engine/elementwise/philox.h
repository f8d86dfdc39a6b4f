// Philox4x32-10, the counter-based generator of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC 2011):
// four random words are a function of a counter and a key, so that any element of any mask can be made at any time.
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

}  // namespace arbalest::engine::elementwise
