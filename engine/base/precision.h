// The precision in which a model computes. In all of them, weights, their gradients, momenta, the central model and
// sums are float32.
#pragma once

namespace arbalest::engine {

enum class Precision {
  kFloat32,  // everything is float32
  // Memory holds float32; products of convolutions and dense layers read 10 bits of each mantissa.
  kTensorFloat32,
  // Tensors between layers, their gradients, and a copy of the weights are bfloat16.
  kBFloat16
};

// The precision's name in a job file.
constexpr const char* to_string(Precision precision) {
  switch (precision) {
    case Precision::kFloat32: return "FP32";
    case Precision::kTensorFloat32: return "TF32";
    case Precision::kBFloat16: break;
  }
  return "BF16";
}

}  // namespace arbalest::engine
