// The sliding window of convolutions and poolings.
#pragma once

#include <cstdint>

namespace arbalest::engine {

struct Extent2d {
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool operator==(const Extent2d&) const = default;
};

struct Window {
  Extent2d kernel;
  Extent2d stride;
  Extent2d padding{0, 0};  // zeros added on both sides
  bool operator==(const Window&) const = default;
};

// Number of window positions along one axis, rounded down as PyTorch does; not positive where the window doesn't fit.
constexpr std::int64_t window_positions(std::int64_t input, std::int64_t kernel, std::int64_t stride,
                                        std::int64_t padding) {
  return input + 2 * padding < kernel ? 0 : (input + 2 * padding - kernel) / stride + 1;
}

}  // namespace arbalest::engine
