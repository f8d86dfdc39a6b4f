// Draws one digit of 28 x 28 pixels from its stroke template, distorted at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataflow/input/batches/random_sequence.h"
#include "dataflow/input/digits/digit_strokes.h"

namespace arbalest::dataflow {

inline constexpr int kDigitSide = 28;
inline constexpr std::size_t kDigitPixels = std::size_t{kDigitSide} * kDigitSide;

// Writes gray values, 0 for the background. All randomness (place, size, slant, rotation, elastic distortion,
// thickness, brightness, noise) comes from `random`. Allocates nothing.
void render_digit(const DigitStyle& style, RandomSequence& random,
                  std::span<std::uint8_t, kDigitPixels> image) noexcept;

}  // namespace arbalest::dataflow
