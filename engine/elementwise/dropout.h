// Inverted dropout, four elements at a time. The mask is a function of (seed, task, layer, element).
#pragma once

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

// What the element is multiplied with. Not a product for dropped elements: 0 * inf is not 0.
ARBALEST_HOST_DEVICE float dropout(float value, std::uint32_t word, const DropoutMask& mask) {
  return word < mask.threshold ? 0.0F : value * mask.scale;
}

}  // namespace arbalest::engine::elementwise
