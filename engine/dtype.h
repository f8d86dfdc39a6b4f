// Element types of tensors.
#pragma once

namespace arbalest::engine {

enum class DType { kFloat32, kInt32 };

}  // namespace arbalest::engine
