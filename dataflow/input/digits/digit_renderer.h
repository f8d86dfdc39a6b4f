// Draws one digit of 28 x 28 pixels from its strokes, distorted at random. The same random sequence gives the same
// bytes on every x86-64 machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataflow/input/batches/random_sequence.h"
#include "dataflow/input/digits/digit_strokes.h"

namespace arbalest::dataflow {

inline constexpr int kDigitSide = 28;
inline constexpr std::size_t kDigitPixels = std::size_t{kDigitSide} * kDigitSide;

// Writes row-major gray values; the background is 0 before noise is added. No stroke may be empty. All randomness
// (place, size, slant, rotation, elastic distortion, thickness, brightness, noise) comes from `random`.
void render_digit(const DigitStyle& style, RandomSequence& random,
                  std::span<std::uint8_t, kDigitPixels> image) noexcept;

}  // namespace arbalest::dataflow
