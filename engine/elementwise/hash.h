// One element of a hash of a flat vector. The hash is the sum over all elements, modulo 2^64, so it does not depend on
// the order in which threads add them.
#pragma once

#include <bit>
#include <cstdint>

#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// The contribution of element `index` to the hash: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) with the index as the
// step of its sequence. It is a bijection of the bits for each index, so a change of one element always changes the
// sum.
ARBALEST_HOST_DEVICE std::uint64_t hashed(float value, std::int64_t index) {
  std::uint64_t mix =
      (static_cast<std::uint64_t>(index) + 1U) * 0x9E3779B97F4A7C15U + std::bit_cast<std::uint32_t>(value);
  mix = (mix ^ (mix >> 30U)) * 0xBF58476D1CE4E5B9U;
  mix = (mix ^ (mix >> 27U)) * 0x94D049BB133111EBU;
  return mix ^ (mix >> 31U);
}

}  // namespace arbalest::engine::elementwise
