#include "engine/cuda/activation.h"

#include "engine/cuda/block.h"
#include "engine/cuda/kernel_operator.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"

namespace arbalest::engine::cuda {

namespace {

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
  return with_function(spec.kind,
                       [&](auto function) { return make_activation<decltype(function)>(spec.input, options); });
}

}  // namespace arbalest::engine::cuda
