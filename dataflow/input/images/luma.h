// The gray of colors.
#pragma once

#include <cstdint>

namespace arbalest::dataflow {

// Returns the luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B, rounded, of the values as they are stored: without
// gamma. This is what Pillow's convert("L") computes.
constexpr std::uint8_t luma(std::uint8_t red, std::uint8_t green, std::uint8_t blue) noexcept {
  constexpr std::uint32_t kRed = 19595;  // 0.299, in parts of 2^16
  constexpr std::uint32_t kGreen = 38470;
  constexpr std::uint32_t kBlue = 7471;
  constexpr std::uint32_t kHalf = 0x8000;
  return static_cast<std::uint8_t>((kRed * red + kGreen * green + kBlue * blue + kHalf) >> 16U);
}

}  // namespace arbalest::dataflow
