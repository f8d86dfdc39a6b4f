// sum = a + b, element by element. It adds up the contributions of a tensor's readers to its gradient.
#pragma once

#include <cstdint>

#include "engine/base/dtype.h"

namespace arbalest::engine {

// Tensors of equal layout, with `elements` elements including padding. `sum` may be a, b, or both.
struct TensorSum {
  const void* a = nullptr;
  const void* b = nullptr;
  void* sum = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::kFloat32;  // or kBFloat16: rounded once
};

}  // namespace arbalest::engine
