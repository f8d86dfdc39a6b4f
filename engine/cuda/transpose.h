// A tensor of four axes from one order of its elements to the other.
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/layout.h"
#include "engine/shape.h"

namespace arbalest::engine::cuda {

// Enqueues a copy of `from` [shape, from_order] to `to` [shape, to_order]: one kernel, or a plain copy where the orders
// are one (none at all where the addresses are one as well). The tensors must not overlap otherwise. Elements of 4
// bytes.
void transpose(const float* from, float* to, const Shape& shape, Order from_order, Order to_order, cudaStream_t stream);

}  // namespace arbalest::engine::cuda
