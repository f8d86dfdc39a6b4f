// A tensor from one order of its elements to another, and from one type to another.
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/layout/layout.h"
#include "engine/shape.h"

namespace arbalest::engine::cuda {

// How the elements of a tensor lie. Tensors of another rank than 4 know the canonical order only.
struct Arrangement {
  DType dtype = DType::kFloat32;  // or kBFloat16
  Order order = Order::kCanonical;

  bool operator==(const Arrangement&) const = default;
};

inline Arrangement arrangement_of(const Layout& layout) { return {layout.dtype(), order_of(layout)}; }

// Enqueues a copy of `from` to `to`, rounded to the nearest where it becomes bfloat16: one kernel, or a plain copy
// where the arrangements are one (none at all where the addresses are one as well). The tensors must not overlap
// otherwise.
void transpose(const void* from, const Arrangement& from_arrangement, void* to, const Arrangement& to_arrangement,
               const Shape& shape, cudaStream_t stream);

}  // namespace arbalest::engine::cuda
