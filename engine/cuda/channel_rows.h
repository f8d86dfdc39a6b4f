// Tensors as batch norm sees them: every channel's numbers in rows.
#pragma once

#include <cstdint>

#include "engine/cuda/block.h"
#include "engine/cuda/layout.h"

namespace arbalest::engine::cuda {

// The input as a matrix [rows, channels]: a row is a pixel of an image, or an example of features. Here and below, all
// bytes of what a kernel gets have a value: no padding.
struct Geometry {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t pixels;  // that follow each other, of one channel: an image's in canonical order, else 1

  __device__ bool has_channels_last() const { return pixels == 1; }
  __device__ std::int64_t index(std::int64_t row, std::int64_t channel) const {
    if (has_channels_last()) return row * channels + channel;
    return (row / pixels * channels + channel) * pixels + row % pixels;
  }
};

inline Geometry geometry_of(const Layout& input) {
  const Shape& shape = input.shape();
  const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  // With one channel the orders are one, but only the canonical one has a name.
  const bool channels_last = shape[1] == 1 || order_of(input) == Order::kChannelsLast;
  return {shape[0] * pixels, shape[1], channels_last ? 1 : pixels};
}

// Calls body(element, its channel) for the elements that fall to this thread.
template <typename Body>
__device__ void for_elements(const Geometry& of, const Body& body) {
  const std::int64_t elements = of.rows * of.channels;
  if (of.has_channels_last()) {
    // One division a thread: the channel moves on by the same distance with each step.
    std::int64_t channel = first_element() % of.channels;
    const std::int64_t channel_step = element_step() % of.channels;
    for (std::int64_t i = first_element(); i < elements; i += element_step()) {
      body(i, channel);
      channel += channel_step;
      if (channel >= of.channels) channel -= of.channels;
    }
  } else {
    for (std::int64_t i = first_element(); i < elements; i += element_step()) body(i, i / of.pixels % of.channels);
  }
}

}  // namespace arbalest::engine::cuda
