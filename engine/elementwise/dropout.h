// Inverted dropout, four elements at a time. The mask is a function of (seed, task, layer, element).
#pragma once

#include <bit>
#include <cstdint>

#include "engine/elementwise/philox.h"
#include "engine/elementwise/portable.h"

namespace arbalest::engine::elementwise {

// Constants of a mask, known before the step.
struct DropoutConstants {
  std::uint32_t layer;
  std::uint32_t threshold;  // a random word below the threshold drops its element: ratio * 2^32
  float scale;              // scale of kept elements: 1 / (1 - ratio)
};

// `ratio` in [0, 1).
inline DropoutConstants dropout_constants(std::uint32_t layer, float ratio) {
  return {layer, static_cast<std::uint32_t>(static_cast<double>(ratio) * 4294967296.0), 1.0F / (1.0F - ratio)};
}

struct DropoutMask {
  std::uint64_t seed;
  std::uint64_t task;
  DropoutConstants constants;
};

// Limit of a layer's elements, so that numbers of quads fit into 32 bits.
inline constexpr std::int64_t kMaxDropoutElements = std::int64_t{1} << 34;

// Random words of elements 4 * quad ... 4 * quad + 3.
ARBALEST_HOST_DEVICE PhiloxCounter dropout_words(const DropoutMask& mask, std::uint32_t quad) {
  return philox({{quad, mask.constants.layer, static_cast<std::uint32_t>(mask.task),
                  static_cast<std::uint32_t>(mask.task >> 32)}},
                {{static_cast<std::uint32_t>(mask.seed), static_cast<std::uint32_t>(mask.seed >> 32)}});
}

// The element scaled, or zero if it is dropped, even for infinity and NaN. A bit mask is used because compilers don't
// vectorize a conditional product.
ARBALEST_HOST_DEVICE float dropout(float value, std::uint32_t word, const DropoutMask& mask) {
  const std::uint32_t keep = word < mask.constants.threshold ? 0U : ~0U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value * mask.constants.scale) & keep);
}

}  // namespace arbalest::engine::elementwise
