// Copies a tensor from one order of its elements to another, and from one type to another.
#pragma once

#include "engine/base/shape.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/runtime/team_stream.h"

namespace arbalest::engine::cuda {

// Type and order of a tensor's elements. Tensors of rank other than 4 have canonical order only.
struct Arrangement {
  DType dtype = DType::kFloat32;  // or kBFloat16
  Order order = Order::kCanonical;

  bool operator==(const Arrangement&) const = default;
};

inline Arrangement arrangement_of(const Layout& layout) { return {layout.dtype(), order_of(layout)}; }

// Enqueues a copy of `from` to `to`; conversion to bfloat16 rounds to nearest. This takes one kernel, or a plain copy
// if the arrangements are equal, or nothing if the addresses are equal, too. The tensors must not overlap otherwise.
void transpose(const void* from, const Arrangement& from_arrangement, void* to, const Arrangement& to_arrangement,
               const Shape& shape, const TeamStream& stream);

}  // namespace arbalest::engine::cuda
