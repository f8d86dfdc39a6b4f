// Activation functions for kernels: in the activation operator, and after a convolution or a dense layer. Each has
// output(x) and gradient(r, dy), which is the derivative times dy. r is the output y, or the input x if kReadsInput.
#pragma once

#include <cmath>

#include "engine/base/error.h"
#include "engine/elementwise/exponential.h"
#include "engine/ops/activation.h"

namespace arbalest::engine::cuda {

struct Relu {
  static constexpr bool kReadsInput = false;
  // NaN stays NaN, so that the divergence check finds it.
  __device__ float output(float x) const { return x < 0.0F ? 0.0F : x; }
  __device__ float gradient(float y, float dy) const { return y > 0.0F ? dy : 0.0F; }
};

struct LeakyRelu {
  static constexpr bool kReadsInput = false;
  float slope = 0.0F;
  __device__ float output(float x) const { return x < 0.0F ? slope * x : x; }
  __device__ float gradient(float y, float dy) const { return y > 0.0F ? dy : slope * dy; }
};

struct Relu6 {
  static constexpr bool kReadsInput = false;
  __device__ float output(float x) const { return x < 0.0F ? 0.0F : x > kRelu6Limit ? kRelu6Limit : x; }  // NaN stays
  __device__ float gradient(float y, float dy) const { return y > 0.0F && y < kRelu6Limit ? dy : 0.0F; }
};

struct Tanh {
  static constexpr bool kReadsInput = false;
  __device__ float output(float x) const { return std::tanh(x); }
  __device__ float gradient(float y, float dy) const { return dy * (1.0F - y) * (1.0F + y); }
};

struct Sigmoid {
  static constexpr bool kReadsInput = false;
  __device__ float output(float x) const { return 1.0F / (1.0F + elementwise::exponential(-x)); }
  __device__ float gradient(float y, float dy) const { return dy * y * (1.0F - y); }
};

struct Gelu {
  static constexpr bool kReadsInput = true;
  __device__ float normal(float x) const { return 0.5F + 0.5F * std::erf(x * 0.70710678F); }  // normal CDF
  __device__ float output(float x) const { return x * normal(x); }
  __device__ float gradient(float x, float dy) const {
    const float density = 0.39894228F * elementwise::exponential(-0.5F * x * x);
    return dy * (normal(x) + x * density);
  }
};

struct Silu {
  static constexpr bool kReadsInput = true;
  __device__ float output(float x) const { return x * Sigmoid{}.output(x); }
  __device__ float gradient(float x, float dy) const {
    const float s = Sigmoid{}.output(x);
    return dy * s * (1.0F + x * (1.0F - s));
  }
};

struct HardSwish {
  static constexpr bool kReadsInput = true;
  __device__ float output(float x) const { return x * Relu6{}.output(x + 3.0F) / 6.0F; }
  __device__ float gradient(float x, float dy) const {
    return x <= -3.0F ? 0.0F : x >= 3.0F ? dy : dy * (x / 3.0F + 0.5F);
  }
};

// Returns body(Relu{}), body(Tanh{}) ... for a function that differentiates its output.
template <typename Body>
auto with_function(const ActivationFunction& f, const Body& body) {
  switch (f.kind) {
    case ActivationKind::kRelu: return body(Relu{});
    case ActivationKind::kTanh: return body(Tanh{});
    case ActivationKind::kSigmoid: return body(Sigmoid{});
    case ActivationKind::kLeakyRelu: return body(LeakyRelu{f.slope});
    case ActivationKind::kRelu6: return body(Relu6{});
    case ActivationKind::kGelu:
    case ActivationKind::kSilu:
    case ActivationKind::kHardSwish: break;
  }
  fail(ErrorKind::kInternal, "activation {} cannot be part of another operator", static_cast<int>(f.kind));
}

// The output of the same functions, chosen by a thread: for kernels whose other work outweighs the choice.
__device__ inline float output_of(const ActivationFunction& f, float x) {
  switch (f.kind) {
    case ActivationKind::kRelu: return Relu{}.output(x);
    case ActivationKind::kTanh: return Tanh{}.output(x);
    case ActivationKind::kSigmoid: return Sigmoid{}.output(x);
    case ActivationKind::kLeakyRelu: return LeakyRelu{f.slope}.output(x);
    case ActivationKind::kRelu6: return Relu6{}.output(x);
    case ActivationKind::kGelu:
    case ActivationKind::kSilu:
    case ActivationKind::kHardSwish: break;
  }
  return x;
}

// The gradient of the same functions without a branch, bit for bit:
//   dy (a + b y) (1 + c y) if least < y < most, else dy slope, which is 0 for a slope of 0
struct Derivative {
  float least = -HUGE_VALF;
  float most = HUGE_VALF;
  float a = 1.0F;
  float b = 0.0F;
  float c = 0.0F;
  float slope = 0.0F;

  __device__ float gradient(float y, float dy) const {
    const float outside = slope == 0.0F ? 0.0F : slope * dy;
    return y > least && y < most ? dy * (a + b * y) * (1.0F + c * y) : outside;
  }
};

inline Derivative derivative_of(const ActivationFunction& f) {
  switch (f.kind) {
    case ActivationKind::kRelu: return {.least = 0.0F};
    case ActivationKind::kTanh: return {.b = -1.0F, .c = 1.0F, .slope = NAN};  // y is NaN, or within -1 and 1
    case ActivationKind::kSigmoid: return {.a = 0.0F, .b = 1.0F, .c = -1.0F, .slope = NAN};
    case ActivationKind::kLeakyRelu: return {.least = 0.0F, .slope = f.slope};
    case ActivationKind::kRelu6: return {.least = 0.0F, .most = kRelu6Limit};
    case ActivationKind::kGelu:
    case ActivationKind::kSilu:
    case ActivationKind::kHardSwish: break;
  }
  fail(ErrorKind::kInternal, "activation {} cannot be part of another operator", static_cast<int>(f.kind));
}

// As with_function, for all functions.
template <typename Body>
auto with_any_function(const ActivationFunction& f, const Body& body) {
  if (f.kind == ActivationKind::kGelu) return body(Gelu{});
  if (f.kind == ActivationKind::kSilu) return body(Silu{});
  if (f.kind == ActivationKind::kHardSwish) return body(HardSwish{});
  return with_function(f, body);
}

}  // namespace arbalest::engine::cuda
