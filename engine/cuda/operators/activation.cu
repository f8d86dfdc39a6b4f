#include "engine/cuda/operators/activation.h"

#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"

namespace arbalest::engine::cuda {

namespace {

// Below, `T` is the type of the elements.
template <typename Function, typename T>
__device__ void activate(Function f, const T* input, T* output, std::int64_t elements) {
  for_groups<kWide<T>>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    Floats<kNumbers> values = load_group<kNumbers>(input, group);
    for (int n = 0; n < kNumbers; ++n) values.at[n] = f.output(values.at[n]);
    store_group(values, output, group);
  });
}

//   read: the input or the output, as the function's derivative requires
template <typename Function, typename T>
__device__ void activate_backward(Function f, const T* read, const T* output_gradient, T* input_gradient,
                                  std::int64_t elements) {
  for_groups<kWide<T>>(elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    const Floats<kNumbers> values = load_group<kNumbers>(read, group);
    Floats<kNumbers> gradient = load_group<kNumbers>(output_gradient, group);
    for (int n = 0; n < kNumbers; ++n) gradient.at[n] = f.gradient(values.at[n], gradient.at[n]);
    store_group(gradient, input_gradient, group);
  });
}

template <typename T, typename Function>
std::unique_ptr<Operator> make_activation(Function f, const Layout& tensor, const PrepareOptions& options) {
  const std::int64_t elements = tensor.shape().elements();
  OperatorTraits traits;
  traits.output = tensor;
  traits.in_place_forward = !Function::kReadsInput || options.mode == OperatorMode::kInference;
  const auto forward = [f, elements](const ForwardAddresses& addresses, const StreamContext& context) {
    launch<activate<Function, T>>(blocks_for_groups<kWide<T>>(elements), context.stream, f,
                                  static_cast<const T*>(addresses.input), static_cast<T*>(addresses.output), elements);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.backward_reads_output = !Function::kReadsInput;
  traits.backward_reads_inputs = Function::kReadsInput;
  traits.in_place_backward = true;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [f, elements](const BackwardAddresses& addresses, const StreamContext& context) {
      launch<activate_backward<Function, T>>(
          blocks_for_groups<kWide<T>>(elements), context.stream, f,
          static_cast<const T*>(Function::kReadsInput ? addresses.input : addresses.output),
          static_cast<const T*>(addresses.output_gradient), static_cast<T*>(addresses.input_gradient), elements);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options) {
  return with_any_function(spec.function, [&](auto f) {
    return is_bfloat16(spec.input) ? make_activation<BFloat16>(f, spec.input, options)
                                   : make_activation<float>(f, spec.input, options);
  });
}

}  // namespace arbalest::engine::cuda
