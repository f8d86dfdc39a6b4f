// Element types of tensors.
#pragma once

#include <cstddef>

namespace arbalest::engine {

enum class DType { kFloat32, kInt32 };

constexpr std::size_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
  }
  return 0;
}

}  // namespace arbalest::engine
