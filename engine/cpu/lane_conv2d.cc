#include <optional>
#include <utility>

#include "engine/alignment.h"
#include "engine/cpu/activation.h"
#include "engine/cpu/lane_convolution.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/program.h"

namespace arbalest::engine::cpu {

namespace {

using Tag = dnnl::memory::format_tag;

struct Weights {
  dnnl::memory::desc given;       // how they, and their gradient, lie
  dnnl::memory::desc by_filter;   // filters innermost, as the output and the weights' gradient are computed
  dnnl::memory::desc by_channel;  // channels innermost, as the input's gradient is
  bool has_bias;
};

OperatorTraits make_traits(const Conv2dSpec& spec, const PrepareOptions& options, const dnnl::memory::desc& weights) {
  OperatorTraits traits;
  traits.output = make_layout(lane_descriptor(window_output_shape(spec.input.shape(), spec.window, spec.filters)));
  traits.parameters = options.parameters;
  if (traits.parameters.empty()) {
    traits.parameters.push_back(make_layout(weights));
    if (spec.bias) traits.parameters.push_back(make_layout(plain_descriptor({spec.filters}, DType::kFloat32)));
  }
  return traits;
}

// `gradient`: of what the convolution computes; `read`: the input as forward left it.
void add_backward(Program& program, const LaneConvolution& convolution, const Operand& gradient, const Operand& read,
                  const Weights& weights) {
  const Operand target{Role::kWeightsGradient, weights.given};
  const Operand produced = program.write_as(target, weights.by_filter);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const Operand bias{Role::kBiasGradient, {}};
    convolution.weights_gradient(context.threads, read.at<const float>(addresses), gradient.at<const float>(addresses),
                                 produced.at<float>(addresses), weights.has_bias ? bias.at<float>(addresses) : nullptr);
  });
  program.deliver(produced, target);
}

void add_input_gradient(Program& program, const LaneConvolution& convolution, const Operand& gradient,
                        const Weights& weights, const Layout& input) {
  const Operand factors = program.read_as({Role::kWeights, weights.given}, weights.by_channel);
  const Operand target{Role::kInputGradient, descriptor(input)};
  const Operand produced = program.write_as(target, lane_descriptor(input.shape()));
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    convolution.input_gradient(context.threads, gradient.at<const float>(addresses), factors.at<const float>(addresses),
                               produced.at<float>(addresses));
  });
  program.deliver(produced, target);
}

}  // namespace

std::unique_ptr<Operator> make_lane_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  const bool training = options.mode == OperatorMode::kTraining;
  const dnnl::memory::dims extents{spec.filters, input[1], spec.window.kernel.height, spec.window.kernel.width};
  const auto weights_as = [&](Tag tag) { return dnnl::memory::desc(extents, dnnl::memory::data_type::f32, tag); };
  OperatorTraits traits = make_traits(spec, options, weights_as(Tag::bcda));
  const Weights weights{descriptor(traits.parameters[0]), weights_as(Tag::bcda), weights_as(Tag::acdb), spec.bias};
  const LaneConvolution convolution(input, spec.filters, spec.window, lane_kernels());
  const Operand output{Role::kOutput, descriptor(traits.output)};
  const bool relu = spec.activation == ActivationKind::kRelu;
  std::optional<ActivationSteps> activation;
  if (spec.activation.has_value()) activation.emplace(engine, options.mode, traits.output, *spec.activation);

  Program forward(engine);
  Operand read{Role::kInput, descriptor(spec.input)};
  if (const auto wanted = lane_descriptor(input); read.descriptor != wanted) {
    const Operand copy = training ? Operand{Role::kSaved, wanted} : forward.scratch(wanted);  // backward reads it too
    forward.reorder(read, copy);
    read = copy;
    if (training) traits.saved_bytes = aligned(wanted.get_size());
  }
  traits.backward_reads_inputs = training && read.role == Role::kInput;
  traits.backward_reads_output = training && activation.has_value();
  const Operand factors = forward.read_as({Role::kWeights, weights.given}, weights.by_filter);
  forward.add([=, has_bias = spec.bias](const TaskContext& context, const Addresses& addresses) {
    const Operand bias{Role::kBias, {}};
    convolution.forward(context.threads, read.at<const float>(addresses), factors.at<const float>(addresses),
                        has_bias ? bias.at<const float>(addresses) : nullptr, relu, output.at<float>(addresses));
  });
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
    add_backward(*backward, convolution, gradient, read, weights);
    if (options.input_gradient) add_input_gradient(*backward, convolution, gradient, weights, spec.input);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
