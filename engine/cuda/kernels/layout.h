// Layouts of tensors in a GPU's memory. All are dense. Images and convolution weights are in canonical order or
// channels last ([n, h, w, c]; weights [out, kernel h, kernel w, in]), which tensor cores read without a transposition.
#pragma once

#include <cstdint>
#include <span>

#include "engine/base/layout.h"
#include "engine/base/precision.h"

namespace arbalest::engine::cuda {

enum class Order { kCanonical, kChannelsLast };

// Tensors of rank other than 4 must be in canonical order.
Layout make_layout(const Shape& shape, DType dtype, Order order);
// See Device::layout_of.
Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers);
Order order_of(const Layout& layout);
// The order of a convolution's images and weights, unless they are given. Tensor cores read channels last. Without
// them, neighboring threads of our kernels read neighboring pixels, and cuDNN's kernels for outputs and input gradients
// read the canonical order: given channels last, most of them ask for a workspace of all three tensors and transpose
// them there (according to cuDNN 9.19 on an H100).
Order order_of_convolutions(Precision precision);
// For tensors of floating-point numbers only: bfloat16 or float32.
bool is_bfloat16(const Layout& layout);

}  // namespace arbalest::engine::cuda
