// Tensors as batch norm and bias kernels read them: each channel's numbers in rows.
#pragma once

#include <cstdint>

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"

namespace arbalest::engine::cuda {

// The input as a matrix [rows, channels]: a row is a pixel of an image, or an example of features. This struct and the
// kernel arguments below have no padding, so all their bytes are initialized.
struct Geometry {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t pixels;  // consecutive pixels of one channel in memory: those of an image in canonical order, else 1
};

inline Geometry geometry_of(const Layout& input) {
  const Shape& shape = input.shape();
  const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  // With one channel both orders have the same memory layout, and the order is called canonical.
  const bool channels_last = shape[1] == 1 || order_of(input) == Order::kChannelsLast;
  return {shape[0] * pixels, shape[1], channels_last ? 1 : pixels};
}

// Walks over the elements of one channel in rows first, first + step, ... Only the start needs divisions (four).
struct RowWalk {
  std::int64_t element;
  std::int64_t pixel;  // index within its image
  std::int64_t element_step;
  std::int64_t pixel_step;
  std::int64_t next_image;  // extra distance when a step ends in another image
  std::int64_t pixels;

  __device__ RowWalk(const Geometry& of, std::int64_t channel, std::int64_t first, std::int64_t step)
      : element((first / of.pixels * of.channels + channel) * of.pixels + first % of.pixels),
        pixel(first % of.pixels),
        element_step(step / of.pixels * of.channels * of.pixels + step % of.pixels),
        pixel_step(step % of.pixels),
        next_image((of.channels - 1) * of.pixels),
        pixels(of.pixels) {}

  __device__ void advance() {
    element += element_step;
    pixel += pixel_step;
    if (pixel < pixels) return;
    pixel -= pixels;
    element += next_image;
  }
};

// Calls body(element, its channel) for each element assigned to this thread. Only the start needs divisions.
template <typename Body>
__device__ void for_elements(const Geometry& of, const Body& body) {
  const std::int64_t elements = of.rows * of.channels;
  std::int64_t pixel = first_element() % of.pixels;
  std::int64_t channel = first_element() / of.pixels % of.channels;
  const std::int64_t pixel_step = element_step() % of.pixels;
  const std::int64_t channel_step = element_step() / of.pixels % of.channels;
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    body(i, channel);
    pixel += pixel_step;
    channel += channel_step;
    if (pixel >= of.pixels) {
      pixel -= of.pixels;
      ++channel;
    }
    if (channel >= of.channels) channel -= of.channels;
  }
}

}  // namespace arbalest::engine::cuda
