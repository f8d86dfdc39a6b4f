#include "engine/cuda/kernels/convert.h"

#include <cstdint>

#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

// Distance in memory of neighbors along each axis of [n, c, h, w].
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

// Calls visit(source offset, target offset) for every element.
template <typename Visit>
void for_each_place(const Layout& from, const Layout& to, const Visit& visit) {
  const Order from_order = order_of(from);
  const Order to_order = order_of(to);
  if (from_order == to_order) {
    ARBALEST_CHECK(from_order == Order::kCanonical || from.shape() == to.shape());
    for (std::int64_t i = 0; i < from.shape().elements(); ++i) visit(i, i);
    return;
  }
  const Shape& shape = from_order == Order::kChannelsLast ? from.shape() : to.shape();
  const Strides source(shape, from_order);
  const Strides target(shape, to_order);
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t w = 0; w < shape[3]; ++w) {
          visit(n * source.axis[0] + c * source.axis[1] + h * source.axis[2] + w * source.axis[3],
                n * target.axis[0] + c * target.axis[1] + h * target.axis[2] + w * target.axis[3]);
        }
      }
    }
  }
}

template <typename From, typename To>
void convert(const Layout& from_layout, const void* from, const Layout& to_layout, void* to) {
  const auto* read = static_cast<const From*>(from);
  auto* written = static_cast<To*>(to);
  for_each_place(from_layout, to_layout, [&](std::int64_t source, std::int64_t target) {
    elementwise::store(elementwise::load(read[source]), written[target]);
  });
}

}  // namespace

void convert_on_host(const Layout& from_layout, const void* from, const Layout& to_layout, void* to) {
  ARBALEST_CHECK(from_layout.shape().elements() == to_layout.shape().elements());
  const bool reads_halves = is_bfloat16(from_layout);
  const bool writes_halves = is_bfloat16(to_layout);
  if (reads_halves) {
    (writes_halves ? convert<BFloat16, BFloat16> : convert<BFloat16, float>)(from_layout, from, to_layout, to);
  } else {
    (writes_halves ? convert<float, BFloat16> : convert<float, float>)(from_layout, from, to_layout, to);
  }
}

}  // namespace arbalest::engine::cuda
