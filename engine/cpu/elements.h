// Loops that are written once for every type of elements: they read by elementwise::load and write by
// elementwise::store, which do nothing to float32.
#pragma once

#include "engine/dtype.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

// Of what is made of elements of both types.
constexpr DType joint_type(DType a, DType b) { return a == DType::kBFloat16 ? a : b; }

// Names a type as an argument.
template <typename T>
struct ElementKind {
  using Type = T;
};

// Calls body(ElementKind<T>()) with T what an element of this type is in memory.
template <typename Body>
decltype(auto) with_elements(DType dtype, const Body& body) {
  if (dtype == DType::kBFloat16) return body(ElementKind<BFloat16>());
  ARBALEST_CHECK(dtype == DType::kFloat32);
  return body(ElementKind<float>());
}

}  // namespace arbalest::engine::cpu
