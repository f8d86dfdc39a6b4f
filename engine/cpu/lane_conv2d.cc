#include <optional>
#include <utility>

#include "engine/alignment.h"
#include "engine/cpu/activation.h"
#include "engine/cpu/lane_convolution.h"
#include "engine/cpu/lanes.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/primitives.h"
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

// A factor of the kernels: the same tensor, or of bfloat16 packed by `pack` into so many units.
template <typename Pack>
Operand packed(Program& program, const Operand& tensor, std::int64_t units, const Pack& pack) {
  if (dtype_of(tensor.descriptor) == DType::kFloat32) return tensor;
  const Operand target = program.scratch(plain_descriptor({units}, DType::kFloat32));
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    pack(context.threads, tensor.at<const BFloat16>(addresses), target.at<LaneUnit>(addresses));
  });
  return target;
}
Operand packed_weights(Program& program, const Operand& weights, const LaneConvolution::Planes& of) {
  const std::int64_t plane = elements_of(weights.descriptor) / (of.groups * of.planes);
  return packed(program, weights, of.groups * ((of.planes + 1) / 2) * plane,
                [=](int threads, const BFloat16* from, LaneUnit* to) {
                  pack_planes(threads, of.groups, of.planes, plane, from, to);
                });
}
std::int64_t units_of(const dnnl::memory::desc& images) {
  const dnnl::memory::dims extents = images.dims();
  return extents[0] * ((extents[1] + 1) / 2) * extents[2] * extents[3];
}

// The images with their padding: themselves, or a copy.
Operand padded(Program& program, const LaneConvolution& convolution, const Operand& images) {
  const auto wanted = lane_descriptor(convolution.padded_shape(), dtype_of(images.descriptor));
  if (wanted == images.descriptor) return images;
  const Operand copy = program.scratch(wanted);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    convolution.pad(context.threads, images.at<const LaneUnit>(addresses), copy.at<LaneUnit>(addresses));
  });
  return copy;
}

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

// `gradient`: of what the convolution computes; `read`: the input as forward left it.
void add_backward(Program& program, const LaneConvolution& convolution, const Operand& gradient, const Operand& read,
                  const Weights& weights) {
  const Operand target{Role::kWeightsGradient, with_type(weights.given, DType::kFloat32)};
  const Operand produced = program.write_as(target, with_type(weights.by_filter, DType::kFloat32));
  const Operand images = padded(program, convolution, read);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const Operand bias{Role::kBiasGradient, {}};
    convolution.weights_gradient(context.threads, images.at<const LaneUnit>(addresses),
                                 gradient.at<const LaneUnit>(addresses), produced.at<float>(addresses),
                                 weights.has_bias ? bias.at<float>(addresses) : nullptr);
  });
  program.deliver(produced, target);
}

void add_input_gradient(Program& program, const LaneConvolution& convolution, const Operand& gradient,
                        const Weights& weights, const Layout& input) {
  const Operand by_channel = program.read_as({Role::kWeights, weights.given}, weights.by_channel);
  const Operand factors = packed_weights(program, by_channel, convolution.input_gradient_planes());
  const Operand arriving = packed(
      program, gradient, units_of(gradient.descriptor),
      [=](int threads, const BFloat16* from, LaneUnit* to) { convolution.pack_output_gradient(threads, from, to); });
  const Operand target{Role::kInputGradient, descriptor(input)};
  const Operand produced = program.write_as(target, lane_descriptor(input.shape(), dtype_of(gradient.descriptor)));
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    convolution.input_gradient(context.threads, arriving.at<const LaneUnit>(addresses),
                               factors.at<const LaneUnit>(addresses), produced.at<void>(addresses));
  });
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
  const LaneKernels& kernels = type == DType::kBFloat16 ? *bfloat16_lane_kernels() : lane_kernels();
  const LaneConvolution convolution(input, spec.filters, spec.window, kernels);
  const Operand output{Role::kOutput, descriptor(traits.output)};
  const bool relu = spec.activation == ActivationKind::kRelu;
  std::optional<ActivationSteps> activation;
  if (spec.activation.has_value()) activation.emplace(engine, options.mode, traits.output, *spec.activation);

  Program forward(engine);
  Operand read{Role::kInput, descriptor(spec.input)};
  if (const auto wanted = lane_descriptor(input, type); read.descriptor != wanted) {
    const Operand copy = training ? Operand{Role::kSaved, wanted} : forward.scratch(wanted);  // backward reads it too
    forward.reorder(read, copy);
    read = copy;
    if (training) traits.saved_bytes = aligned(wanted.get_size());
  }
  traits.backward_reads_inputs = training && read.role == Role::kInput;
  traits.backward_reads_output = training && activation.has_value();
  const Operand by_filter = forward.read_as({Role::kWeights, weights.given}, weights.by_filter);
  const Operand factors = packed_weights(forward, by_filter, convolution.forward_planes());
  const Operand images =
      packed(forward, read, units_of(read.descriptor),
             [=](int threads, const BFloat16* from, LaneUnit* to) { convolution.pack_input(threads, from, to); });
  forward.add([=, has_bias = spec.bias](const TaskContext& context, const Addresses& addresses) {
    const Operand bias{Role::kBias, {}};
    convolution.forward(context.threads, images.at<const LaneUnit>(addresses), factors.at<const LaneUnit>(addresses),
                        has_bias ? bias.at<const float>(addresses) : nullptr, relu, output.at<void>(addresses));
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
