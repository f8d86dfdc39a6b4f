// What a model computes in. Weights, their gradients, momenta and the central model are float32 in each of them, and so
// are sums.
#pragma once

namespace arbalest::engine {

enum class Precision {
  kFloat32,        // everything
  kTensorFloat32,  // float32 in memory; products of convolutions and dense layers read 10 bits of each mantissa
  kBFloat16        // tensors between layers, their gradients, and a copy of the weights are bfloat16
};

// As in a job file.
constexpr const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "FP32";
    case Precision::kTensorFloat32:
      return "TF32";
    case Precision::kBFloat16:
      break;
  }
  return "BF16";
}

}  // namespace arbalest::engine
