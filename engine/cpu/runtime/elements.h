// Helpers for loops that are written once for all element types: they read with elementwise::load and write with
// elementwise::store, which do nothing for float32.
#pragma once

#include "engine/base/dtype.h"
#include "engine/base/error.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cpu {

// Type of a result that is computed from elements of both types.
constexpr DType joint_type(DType a, DType b) { return a == DType::kBFloat16 ? a : b; }

// Passes a type as an argument.
template <typename T>
struct ElementKind {
  using Type = T;
};

// Calls body(ElementKind<T>()), where T is the type in memory of `dtype`.
template <typename Body>
decltype(auto) with_elements(DType dtype, const Body& body) {
  if (dtype == DType::kBFloat16) return body(ElementKind<BFloat16>());
  ARBALEST_CHECK(dtype == DType::kFloat32);
  return body(ElementKind<float>());
}

}  // namespace arbalest::engine::cpu
