// Layouts of tensors in a GPU's memory. All are dense. Images and convolution weights are in canonical order or
// channels last ([n, h, w, c]; weights [out, kernel h, kernel w, in]), which tensor cores read without a transposition.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/layout.h"

namespace arbalest::engine::cuda {

enum class Order { kCanonical, kChannelsLast };

// Tensors of rank other than 4 must be in canonical order.
Layout make_layout(const Shape& shape, DType dtype, Order order);
// See Device::layout_of.
Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers);
Order order_of(const Layout& layout);
// For tensors of floating-point numbers only: bfloat16 or float32.
bool is_bfloat16(const Layout& layout);

}  // namespace arbalest::engine::cuda
