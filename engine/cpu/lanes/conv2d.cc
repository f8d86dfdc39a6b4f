#include <optional>
#include <utility>

#include "engine/base/alignment.h"
#include "engine/cpu/lanes/convolution_method.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/activation_steps.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
#include "engine/cpu/onednn/program.h"

namespace arbalest::engine::cpu {

namespace {

using Tag = dnnl::memory::format_tag;

struct Weights {
  // Layout of the parameter and its gradient.
  dnnl::memory::desc given;
  // Filters innermost: for the output and the gradient of the weights.
  dnnl::memory::desc by_filter;
  // Channels innermost: for the gradient of the input.
  dnnl::memory::desc by_channel;
  bool has_bias;
};

OperatorTraits make_traits(const Conv2dSpec& spec, const PrepareOptions& options, const dnnl::memory::desc& weights) {
  OperatorTraits traits;
  traits.output = make_layout(lane_descriptor(window_output_shape(spec.input.shape(), spec.window, spec.filters),
                                              linear_type(options.precision)));
  traits.low_precision_weights = options.precision == Precision::kBFloat16;
  traits.parameters = options.parameters;
  if (traits.parameters.empty()) {
    traits.parameters.push_back(make_layout(with_type(weights, DType::kFloat32)));
    if (spec.bias) traits.parameters.push_back(make_layout(plain_descriptor({spec.filters}, DType::kFloat32)));
  }
  return traits;
}

// `gradient`: gradient of the convolution's result; `read`: the input, or the copy of it that forward saved
void add_weights_gradient(Program& program, const LaneSteps& steps, const Operand& read, const Operand& gradient,
                          const Weights& weights) {
  const Operand target{Role::kWeightsGradient, with_type(weights.given, DType::kFloat32)};
  const Operand produced = program.write_as(target, with_type(weights.by_filter, DType::kFloat32));
  steps.weights_gradient(program, read, gradient, weights.has_bias, produced);
  program.deliver(produced, target);
}

void add_input_gradient(Program& program, const LaneSteps& steps, const Operand& gradient, const Weights& weights,
                        const Layout& input) {
  const Operand by_channel = program.read_as({Role::kWeights, weights.given}, weights.by_channel);
  const Operand target{Role::kInputGradient, descriptor(input)};
  const Operand produced = program.write_as(target, lane_descriptor(input.shape(), dtype_of(gradient.descriptor)));
  steps.input_gradient(program, gradient, by_channel, produced);
  program.deliver(produced, target);
}

}  // namespace

std::unique_ptr<Operator> make_lane_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  const bool training = options.mode == OperatorMode::kTraining;
  const dnnl::memory::dims extents{spec.filters, input[1], spec.window.kernel.height, spec.window.kernel.width};
  const DType type = linear_type(options.precision);
  const auto weights_as = [&](Tag tag) { return dnnl::memory::desc(extents, native_type(type), tag); };
  OperatorTraits traits = make_traits(spec, options, weights_as(Tag::bcda));
  const Weights weights{with_type(descriptor(traits.parameters[0]), type), weights_as(Tag::bcda), weights_as(Tag::acdb),
                        spec.bias};
  const auto steps = prefers_winograd(spec, type) ? winograd_lane_steps(spec) : direct_lane_steps(spec, type);
  const Operand output{Role::kOutput, descriptor(traits.output)};
  const bool relu = spec.activation == ActivationKind::kRelu;
  std::optional<ActivationSteps> activation;
  if (spec.activation.has_value()) activation.emplace(engine, options.mode, traits.output, *spec.activation);

  Program forward(engine);
  Operand read{Role::kInput, descriptor(spec.input)};
  if (const auto wanted = lane_descriptor(input, type); read.descriptor != wanted) {
    // saved, because backward reads it, too
    const Operand copy = training ? Operand{Role::kSaved, wanted} : forward.scratch(wanted);
    forward.reorder(read, copy);
    read = copy;
    if (training) traits.saved_bytes = aligned(wanted.get_size());
  }
  traits.backward_reads_inputs = training && read.role == Role::kInput;
  traits.backward_reads_output = training && activation.has_value();
  const Operand by_filter = forward.read_as({Role::kWeights, weights.given}, weights.by_filter);
  steps->forward(forward, read, by_filter, spec.bias, relu, output);
  if (activation.has_value() && !relu) activation->forward(forward, output, output);

  std::optional<Program> backward;
  if (training) {
    backward.emplace(engine);
    Operand gradient{Role::kOutputGradient, output.descriptor};
    if (activation.has_value()) {
      const Operand before = backward->scratch(output.descriptor);
      activation->backward(*backward, output, gradient, before);
      gradient = before;
    }
    add_weights_gradient(*backward, *steps, read, gradient, weights);
    if (options.input_gradient) add_input_gradient(*backward, *steps, gradient, weights, spec.input);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
