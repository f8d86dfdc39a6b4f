// How tensors lie in a GPU's memory: dense, images and convolution weights either in canonical order or with channels
// last ([n, h, w, c]; weights [out, kernel h, kernel w, in]), which tensor cores read without a transposition.
#pragma once

#include "engine/layout.h"

namespace arbalest::engine::cuda {

enum class Order { kCanonical, kChannelsLast };

// Tensors of rank other than 4 lie in canonical order.
Layout make_layout(const Shape& shape, DType dtype, Order order);
Order order_of(const Layout& layout);
// Of tensors of numbers: bfloat16, or float32.
bool is_bfloat16(const Layout& layout);

}  // namespace arbalest::engine::cuda
