// Replaces the header of the same path: C++ has no `extern __shared__`.
#pragma once

#include "tests/cuda_stand_in/kernel_language.h"

namespace arbalest::engine::cuda {

template <typename T>
T* dynamic_shared_memory(int line = __builtin_LINE()) {
  return reinterpret_cast<T*>(tests::cuda_stand_in::dynamic_shared_memory(line));
}

}  // namespace arbalest::engine::cuda
