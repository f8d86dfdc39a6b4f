#include "engine/cuda/activation.h"

#include "engine/cuda/block.h"
#include "engine/cuda/kernel_operator.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

// Below, `T` is the type of the elements.
template <typename Function, typename T>
__global__ void activate(const T* input, T* output, std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    store(Function::output(load(input[i])), output[i]);
  }
}

template <typename Function, typename T>
__global__ void activate_backward(const T* output, const T* output_gradient, T* input_gradient, std::int64_t elements) {
  for (std::int64_t i = first_element(); i < elements; i += element_step()) {
    store(Function::gradient(load(output[i]), load(output_gradient[i])), input_gradient[i]);
  }
}

template <typename Function, typename T>
std::unique_ptr<Operator> make_activation(const Layout& tensor, const PrepareOptions& options) {
  const std::int64_t elements = tensor.shape().elements();
  OperatorTraits traits;
  traits.output = tensor;
  traits.in_place_forward = true;
  const auto forward = [elements](const ForwardAddresses& addresses, const StreamContext& context) {
    launch(activate<Function, T>, blocks_for(elements), context.stream, static_cast<const T*>(addresses.input),
           static_cast<T*>(addresses.output), elements);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.backward_reads_output = true;
  traits.in_place_backward = true;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [elements](const BackwardAddresses& addresses, const StreamContext& context) {
      launch(activate_backward<Function, T>, blocks_for(elements), context.stream,
             static_cast<const T*>(addresses.output), static_cast<const T*>(addresses.output_gradient),
             static_cast<T*>(addresses.input_gradient), elements);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options) {
  return with_function(spec.kind, [&](auto function) {
    using Function = decltype(function);
    return is_bfloat16(spec.input) ? make_activation<Function, BFloat16>(spec.input, options)
                                   : make_activation<Function, float>(spec.input, options);
  });
}

}  // namespace arbalest::engine::cuda
