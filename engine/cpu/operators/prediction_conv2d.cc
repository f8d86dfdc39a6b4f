#include "engine/cpu/operators/prediction_conv2d.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/winograd/blocked_convolution.h"
#include "engine/cpu/winograd/weights_layout.h"

namespace arbalest::engine::cpu {

namespace {

dnnl::memory::desc in_blocks(const Shape& images) {
  return {dims(images), native_type(DType::kFloat32), dnnl::memory::format_tag::aBcd16b};
}

}  // namespace

// Speed relative to oneDNN's direct kernels, measured on a core of an Emerald Rapids Xeon (bench/results,
// "predict"): 1.0 to 2.6 with 16 to 128 channels, and 2.4 for LeNet's 5 x 5 kernels, whose channels oneDNN pads. With
// 256 channels oneDNN's own kernels of this kind are faster.
bool prefers_transformed_weights(const Conv2dSpec& spec, const PrepareOptions& options) {
  constexpr std::int64_t kFewest = 16;
  constexpr std::int64_t kMost = 128;
  const std::int64_t channels = spec.input.shape()[1];
  return options.mode == OperatorMode::kInference && options.parameters.empty() &&
         options.precision == Precision::kFloat32 && BlockedWinograd::fits(spec) && channels >= kFewest &&
         std::max(channels, spec.filters) <= kMost &&
         spec.activation.value_or(ActivationKind::kRelu) == ActivationKind::kRelu;
}

std::unique_ptr<Operator> make_prediction_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                                 const dnnl::engine& engine) {
  Program forward(engine);
  const dnnl::memory::desc given = descriptor(spec.input);
  const Operand input =
      forward.read_as({Role::kInput, given}, BlockedWinograd::takes(given) ? given : in_blocks(spec.input.shape()));
  const Shape shape = window_output_shape(spec.input.shape(), spec.window, spec.filters);
  const auto alike = with_extents(input.descriptor, dims(shape));
  const Operand output{Role::kOutput, alike && BlockedWinograd::takes(*alike) ? *alike : in_blocks(shape)};
  OperatorTraits traits;
  traits.output = make_layout(output.descriptor);
  traits.parameters.push_back(winograd_weights_layout(weights_shape(spec)));
  if (spec.bias) traits.parameters.push_back(make_layout(plain_descriptor({spec.filters}, DType::kFloat32)));
  const BlockedWinograd winograd(spec, input.descriptor, output.descriptor, options.threads);
  const Operand scratch = forward.scratch(plain_descriptor({winograd.scratch()}, DType::kFloat32));
  forward.add([=, has_bias = spec.bias, relu = spec.activation.has_value()](const TaskContext& context,
                                                                            const Addresses& addresses) {
    winograd.run(context.threads, {.input = input.at<const float>(addresses),
                                   .weights = static_cast<const float*>(addresses[Role::kWeights]),
                                   .bias = has_bias ? static_cast<const float*>(addresses[Role::kBias]) : nullptr,
                                   .relu = relu,
                                   .scratch = scratch.at<float>(addresses),
                                   .output = output.at<float>(addresses)});
  });
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
}

}  // namespace arbalest::engine::cpu
