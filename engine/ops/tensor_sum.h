// sum = a + b, element by element: what a tensor's readers say of its gradient, added up.
#pragma once

#include <cstdint>

#include "engine/dtype.h"

namespace arbalest::engine {

// Tensors that lie alike, each of `elements` with all padding. The sum may be at the place of a, of b, or of both.
struct TensorSum {
  const void* a = nullptr;
  const void* b = nullptr;
  void* sum = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;  // or kBFloat16: rounded once
};

}  // namespace arbalest::engine
