#include "engine/cuda/convert.h"

#include <cstdint>
#include <cstring>

#include "engine/cuda/layout.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

// Offsets of one step along each axis of [n, c, h, w].
struct Strides {
  Strides(const Shape& shape, Order order) {
    const std::int64_t c = shape[1], h = shape[2], w = shape[3];
    if (order == Order::kCanonical) {
      axis[0] = c * h * w, axis[1] = h * w, axis[2] = w, axis[3] = 1;
    } else {
      axis[0] = c * h * w, axis[1] = 1, axis[2] = w * c, axis[3] = c;
    }
  }
  std::int64_t axis[4];
};

}  // namespace

void convert_on_host(const Layout& from_layout, const void* from, const Layout& to_layout, void* to) {
  ARBALEST_CHECK(from_layout.bytes() == to_layout.bytes());
  const Order from_order = order_of(from_layout);
  const Order to_order = order_of(to_layout);
  if (from_order == to_order) {
    ARBALEST_CHECK(from_order == Order::kCanonical || from_layout.shape() == to_layout.shape());
    std::memcpy(to, from, from_layout.bytes());
    return;
  }
  const Shape& shape = from_order == Order::kChannelsLast ? from_layout.shape() : to_layout.shape();
  const Strides source(shape, from_order);
  const Strides target(shape, to_order);
  const auto* read = static_cast<const std::uint32_t*>(from);
  auto* written = static_cast<std::uint32_t*>(to);
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t w = 0; w < shape[3]; ++w) {
          written[n * target.axis[0] + c * target.axis[1] + h * target.axis[2] + w * target.axis[3]] =
              read[n * source.axis[0] + c * source.axis[1] + h * source.axis[2] + w * source.axis[3]];
        }
      }
    }
  }
}

}  // namespace arbalest::engine::cuda
