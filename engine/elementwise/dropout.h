// Inverted dropout, four elements at a time. The mask is a function of (seed, task, layer, element).
#pragma once

#include <bit>
#include <cstdint>

#include "engine/elementwise/philox.h"
#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

struct DropoutMask {
  std::uint64_t seed;
  std::uint64_t task;
  std::uint32_t layer;
  std::uint32_t threshold;  // a random word below it drops its element: ratio * 2^32
  float scale;              // of kept elements: 1 / (1 - ratio)
};

// Random words of elements 4 * quad ... 4 * quad + 3. Layers have at most 2^34 elements.
ARBALEST_HOST_DEVICE PhiloxCounter dropout_words(const DropoutMask& mask, std::uint32_t quad) {
  return philox(
      {{quad, mask.layer, static_cast<std::uint32_t>(mask.task), static_cast<std::uint32_t>(mask.task >> 32)}},
      {{static_cast<std::uint32_t>(mask.seed), static_cast<std::uint32_t>(mask.seed >> 32)}});
}

// The element, scaled or zero; zero for infinity and NaN too. By bits: compilers don't vectorize a conditional product.
ARBALEST_HOST_DEVICE float dropout(float value, std::uint32_t word, const DropoutMask& mask) {
  const std::uint32_t keep = word < mask.threshold ? 0U : ~0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value * mask.scale) & keep);
}

}  // namespace arbalest::engine::elementwise
