#include "engine/cpu/operators/linear.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cpu/dense_gradient/dense_gradient.h"
#include "engine/cpu/onednn/activation_steps.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"

namespace arbalest::engine::cpu {

namespace {

// The layout of a tensor of the input's shape for a kernel that describes it as `view`.
dnnl::memory::desc lies_as(const dnnl::memory::desc& view, const Shape& shape) {
  return view.dims() == dims(shape) ? view : plain_descriptor(shape, dtype_of(view));
}

Operand seen_as(Operand tensor, const dnnl::memory::desc& view) {
  tensor.descriptor = view;
  return tensor;
}

OperatorTraits make_traits(const LinearKernels& kernels, const Shape& weights, const PrepareOptions& options) {
  OperatorTraits traits;
  traits.output = make_layout(kernels.forward.dst_desc());
  traits.parameters = options.parameters;
  if (traits.parameters.empty()) {
    traits.parameters.push_back(make_layout(with_type(kernels.forward.weights_desc(), DType::kFloat32), weights));
    if (kernels.has_bias()) traits.parameters.push_back(make_layout(kernels.bias()));
  }
  ARBALEST_CHECK(traits.parameters[0].shape() == weights);
  traits.low_precision_weights = options.precision == Precision::kBFloat16;
  return traits;
}

// Writes the weights for LinearKernels::reversed to scratch.
Operand reverse_weights(Program& program, const Operand& weights, const dnnl::memory::desc& wanted) {
  const dnnl::memory::dims extents = weights.descriptor.dims();  // filters, channels, height, width
  const std::int64_t filters = extents[0], channels = extents[1], taps = extents[2] * extents[3];
  const Shape exchanged{channels, filters, extents[2], extents[3]};
  const Operand plain =
      program.read_as(weights, plain_descriptor({filters, channels, extents[2], extents[3]}, DType::kFloat32));
  const Operand reversed = program.scratch(plain_descriptor(exchanged, DType::kFloat32));
  program.add([=](const TaskContext&, const Addresses& addresses) {
    for (std::int64_t f = 0; f < filters; ++f) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* from = plain.at<const float>(addresses) + (f * channels + c) * taps;
        std::reverse_copy(from, from + taps, reversed.at<float>(addresses) + (c * filters + f) * taps);
      }
    }
  });
  return program.read_as(reversed, wanted);
}

// Adds our own kernel; `input` and `gradient` are in canonical order.
void add_paired_gradient(Program& program, const PairedWeights& of, const Operand& input, const Operand& gradient,
                         const Operand& target, bool has_bias) {
  const std::int64_t examples = input.descriptor.dims()[0];
  ARBALEST_CHECK(input.descriptor == plain_descriptor({examples, of.features}, DType::kBFloat16));
  ARBALEST_CHECK(gradient.descriptor == plain_descriptor({examples, of.units}, DType::kBFloat16));
  const std::int64_t pairs = (examples + 1) / 2;
  const auto scratch_of = [&](std::int64_t columns) {
    return program.scratch(plain_descriptor({pairs * columns}, DType::kFloat32));
  };
  const Operand paired_input = scratch_of(of.padded_features());
  const Operand paired_gradient = scratch_of(of.padded_units());
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* arriving = gradient.at<const BFloat16>(addresses);
    auto* inputs = paired_input.at<LaneUnit>(addresses);
    auto* gradients = paired_gradient.at<LaneUnit>(addresses);
    pair_examples(context.threads, examples, of.features, of.padded_features(), input.at<const BFloat16>(addresses),
                  inputs);
    pair_examples(context.threads, examples, of.units, of.padded_units(), arriving, gradients);
    dense_gradient(context.threads, of, pairs, inputs, gradients, target.at<float>(addresses));
    if (has_bias) sum_examples(examples, of.units, arriving, static_cast<float*>(addresses[Role::kBiasGradient]));
  });
}

// `read`: the input, or the copy of it that forward saved. `weights_layout`: layout of the weights and their gradient.
void add_backward(Program& program, const LinearKernels& kernels, const Layout& input, const Operand& read,
                  const dnnl::memory::desc& weights_layout) {
  const dnnl::primitive_desc_base& of_weights = *kernels.weights_gradient;
  const Operand output_gradient{Role::kOutputGradient, kernels.forward.dst_desc()};
  const Operand gradient = program.read_as(output_gradient, of_weights.diff_dst_desc());
  const Operand target{Role::kWeightsGradient, with_type(weights_layout, DType::kFloat32)};
  const Operand source = program.read_as(read, of_weights.src_desc());
  if (const auto paired = paired_weights(weights_layout)) {
    add_paired_gradient(program, *paired, source, gradient, target, kernels.has_bias());
  } else {
    const Operand produced = program.write_as(target, of_weights.diff_weights_desc());
    Program::Arguments arguments{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_DIFF_DST, gradient}, {DNNL_ARG_DIFF_WEIGHTS, produced}};
    if (kernels.has_bias()) arguments.push_back({DNNL_ARG_DIFF_BIAS, {Role::kBiasGradient, kernels.bias()}});
    program.add(of_weights, std::move(arguments));
    program.deliver(produced, target);
  }
  if (!kernels.input_gradient.has_value()) return;

  const dnnl::primitive_desc_base& of_input = *kernels.input_gradient;
  const Operand same_gradient = gradient.descriptor == of_input.diff_dst_desc()
                                    ? gradient
                                    : program.read_as(output_gradient, of_input.diff_dst_desc());
  const Operand weights = program.read_as({Role::kWeights, weights_layout}, of_input.weights_desc());
  const Operand input_target{Role::kInputGradient, descriptor(input)};
  const Operand input_gradient = program.write_as(input_target, lies_as(of_input.diff_src_desc(), input.shape()));
  program.add(of_input, {{DNNL_ARG_DIFF_DST, same_gradient},
                         {DNNL_ARG_WEIGHTS, weights},
                         {DNNL_ARG_DIFF_SRC, seen_as(input_gradient, of_input.diff_src_desc())}});
  program.deliver(input_gradient, input_target);
}

}  // namespace

std::unique_ptr<Operator> make_linear(const Layout& input, const Shape& weights, const LinearKernels& kernels,
                                      std::optional<ActivationFunction> f, const PrepareOptions& options,
                                      const dnnl::engine& engine) {
  const dnnl::primitive_desc_base& kernel = kernels.forward;
  const bool training = options.mode == OperatorMode::kTraining;
  OperatorTraits traits = make_traits(kernels, weights, options);
  const dnnl::memory::desc weights_layout =
      cut_as(with_type(descriptor(traits.parameters[0]), linear_type(options.precision)), kernel.weights_desc());
  std::optional<ActivationSteps> activation;
  if (f.has_value()) {
    ARBALEST_CHECK(!differentiates_input(f->kind));
    activation.emplace(engine, options.mode, traits.output, *f);
  }

  Program forward(engine);
  Operand read{Role::kInput, descriptor(input)};
  if (const auto wanted = lies_as(kernel.src_desc(), input.shape()); read.descriptor != wanted) {
    // saved, because backward reads it, too
    const Operand copy = training ? Operand{Role::kSaved, wanted} : forward.scratch(wanted);
    forward.reorder(read, copy);
    read = copy;
    if (training) traits.saved_bytes = aligned(wanted.get_size());
  }
  traits.backward_reads_inputs = training && read.role == Role::kInput;
  traits.backward_reads_output = training && activation.has_value();
  traits.overwrites_output_gradient = traits.backward_reads_output;  // by the gradient of the activation's input
  read = seen_as(read, kernel.src_desc());
  const Operand output{Role::kOutput, kernel.dst_desc()};
  const Operand given{Role::kWeights, weights_layout};
  if (const auto& reversed = kernels.reversed) {
    const Operand turned = reverse_weights(forward, given, reversed->weights_desc());
    forward.add(*reversed, {{DNNL_ARG_DIFF_DST, read}, {DNNL_ARG_WEIGHTS, turned}, {DNNL_ARG_DIFF_SRC, output}});
  } else {
    Program::Arguments arguments{{DNNL_ARG_SRC, read},
                                 {DNNL_ARG_WEIGHTS, forward.read_as(given, kernel.weights_desc())},
                                 {DNNL_ARG_DST, output}};
    if (kernels.has_bias()) arguments.push_back({DNNL_ARG_BIAS, {Role::kBias, kernels.bias()}});
    forward.add(kernel, std::move(arguments));
  }
  if (activation.has_value() && !kernels.applies_activation) activation->forward(forward, output, output);

  std::optional<Program> backward;
  if (training) {
    backward.emplace(engine);
    const Operand gradient{Role::kOutputGradient, kernel.dst_desc()};
    if (activation.has_value()) activation->backward(*backward, output, gradient, gradient);
    add_backward(*backward, kernels, input, read, weights_layout);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
