// Nonlinearities for kernels, by kind: of the activation operator, and behind a convolution or a dense layer. Each has
//   output(x) and gradient(y, dy), the derivative times dy, from the output y.
#pragma once

#include <cmath>

#include "engine/elementwise/exponential.h"
#include "engine/error.h"
#include "engine/ops/activation.h"

namespace arbalest::engine::cuda {

struct Relu {
  // NaN stays NaN, so that it is found.
  static __device__ float output(float x) { return x < 0.0F ? 0.0F : x; }
  static __device__ float gradient(float y, float dy) { return y > 0.0F ? dy : 0.0F; }
};

struct Tanh {
  static __device__ float output(float x) { return std::tanh(x); }
  static __device__ float gradient(float y, float dy) { return dy * (1.0F - y) * (1.0F + y); }
};

struct Sigmoid {
  static __device__ float output(float x) { return 1.0F / (1.0F + elementwise::exponential(-x)); }
  static __device__ float gradient(float y, float dy) { return dy * y * (1.0F - y); }
};

// Returns body(Relu{}), body(Tanh{}) or body(Sigmoid{}).
template <typename Body>
auto with_function(ActivationKind kind, const Body& body) {
  switch (kind) {
    case ActivationKind::kRelu:
      return body(Relu{});
    case ActivationKind::kTanh:
      return body(Tanh{});
    case ActivationKind::kSigmoid:
      return body(Sigmoid{});
  }
  fail(ErrorKind::kInternal, "unknown activation {}", static_cast<int>(kind));
}

}  // namespace arbalest::engine::cuda
