#include <cmath>

#include "engine/cuda/block.h"
#include "engine/cuda/kernel_operator.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"
#include "engine/elementwise/exponential.h"

namespace arbalest::engine::cuda {

namespace {

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

template <typename Function>
__global__ void activate(const float* input, float* output, std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) output[i] = Function::output(input[i]);
}

template <typename Function>
__global__ void activate_backward(const float* output, const float* output_gradient, float* input_gradient,
                                  std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    input_gradient[i] = Function::gradient(output[i], output_gradient[i]);
  }
}

template <typename Function>
std::unique_ptr<Operator> make_activation(const Layout& tensor, const PrepareOptions& options) {
  const std::int64_t elements = tensor.shape().elements();
  OperatorTraits traits;
  traits.output = tensor;
  traits.in_place_forward = true;
  const auto forward = [elements](const ForwardAddresses& addresses, const StreamContext& context) {
    launch(activate<Function>, blocks_for(elements), context.stream, static_cast<const float*>(addresses.input),
           static_cast<float*>(addresses.output), elements);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.backward_reads_output = true;
  traits.in_place_backward = true;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [elements](const BackwardAddresses& addresses, const StreamContext& context) {
      launch(activate_backward<Function>, blocks_for(elements), context.stream,
             static_cast<const float*>(addresses.output), static_cast<const float*>(addresses.output_gradient),
             static_cast<float*>(addresses.input_gradient), elements);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options) {
  switch (spec.kind) {
    case ActivationKind::kRelu:
      return make_activation<Relu>(spec.input, options);
    case ActivationKind::kTanh:
      return make_activation<Tanh>(spec.input, options);
    case ActivationKind::kSigmoid:
      break;
  }
  return make_activation<Sigmoid>(spec.input, options);
}

}  // namespace arbalest::engine::cuda
