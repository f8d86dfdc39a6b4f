// Element types of tensors.
#pragma once

#include <cstddef>

namespace arbalest::engine {

enum class DType { kFloat32, kInt32, kBFloat16 };

// Bytes per element.
constexpr std::size_t size_of(DType dtype) { return dtype == DType::kBFloat16 ? 2 : 4; }

}  // namespace arbalest::engine
