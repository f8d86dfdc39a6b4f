#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/primitives.h"
#include "engine/cpu/program.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

using Forward = dnnl::convolution_forward::primitive_desc;

// Weights that the caller fixed are read as they lie if there is a kernel for that, else through a reorder.
Forward choose_forward(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& wanted,
                       const Window& window) {
  if (!options.parameters.empty()) {
    LinearTensors fixed = wanted;
    fixed.weights = descriptor(options.parameters[0]);
    if (auto kernel = find_convolution(engine, options.mode, fixed, window)) return *kernel;
  }
  return convolution(engine, options.mode, wanted, window);
}

struct Operands {
  Operand input;  // as backward finds it
  Operand input_gradient;
  Operand weights;
  Operand weights_gradient;
  Operand output_gradient;
};

Program make_backward(const dnnl::engine& engine, const PrepareOptions& options, const LinearTensors& wanted,
                      const Window& window, const Forward& forward, const Operands& operands) {
  Program program(engine);
  const auto of_weights = convolution_weights_gradient(engine, wanted, window, forward);
  const Operand gradient = program.read_as(operands.output_gradient, of_weights.diff_dst_desc());
  const Operand weights_gradient = program.write_as(operands.weights_gradient, of_weights.diff_weights_desc());
  Program::Arguments arguments{{DNNL_ARG_SRC, program.read_as(operands.input, of_weights.src_desc())},
                               {DNNL_ARG_DIFF_DST, gradient},
                               {DNNL_ARG_DIFF_WEIGHTS, weights_gradient}};
  if (!wanted.bias.is_zero()) arguments.push_back({DNNL_ARG_DIFF_BIAS, {Role::kBiasGradient, wanted.bias}});
  program.add(of_weights, std::move(arguments));
  program.deliver(weights_gradient, operands.weights_gradient);
  if (!options.input_gradient) return program;

  const auto of_input = convolution_input_gradient(engine, wanted, window, forward);
  const Operand same_gradient = gradient.descriptor == of_input.diff_dst_desc()
                                    ? gradient
                                    : program.read_as(operands.output_gradient, of_input.diff_dst_desc());
  const Operand weights = program.read_as(operands.weights, of_input.weights_desc());
  const Operand input_gradient = program.write_as(operands.input_gradient, of_input.diff_src_desc());
  program.add(of_input,
              {{DNNL_ARG_DIFF_DST, same_gradient}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, input_gradient}});
  program.deliver(input_gradient, operands.input_gradient);
  return program;
}

}  // namespace

std::unique_ptr<Operator> prepare(const Conv2dSpec& spec, const PrepareOptions& options, const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  ARBALEST_CHECK(input.rank() == 4 && spec.filters > 0);
  const std::int64_t height =
      window_positions(input[2], window.kernel.height, window.stride.height, window.padding.height);
  const std::int64_t width = window_positions(input[3], window.kernel.width, window.stride.width, window.padding.width);
  ARBALEST_CHECK(height > 0 && width > 0);

  LinearTensors wanted{any_layout(dims(input)),
                       any_layout({spec.filters, input[1], window.kernel.height, window.kernel.width}),
                       {},
                       any_layout({input[0], spec.filters, height, width})};
  if (spec.bias) wanted.bias = plain_descriptor({spec.filters}, DType::kFloat32);
  const Forward forward = choose_forward(engine, options, wanted, window);

  OperatorTraits traits;
  traits.output = make_layout(forward.dst_desc());
  traits.parameters = options.parameters;
  if (traits.parameters.empty()) {
    traits.parameters.push_back(make_layout(forward.weights_desc()));
    if (spec.bias) traits.parameters.push_back(make_layout(wanted.bias));
  }

  // An input that lies otherwise than the kernels want is copied; backward reads the copy.
  const bool training = options.mode == OperatorMode::kTraining;
  const Operand given{Role::kInput, descriptor(spec.input)};
  const Operand weights{Role::kWeights, descriptor(traits.parameters[0])};
  Program program(engine);
  Operand read = given;
  if (given.descriptor != forward.src_desc()) {
    read = training ? Operand{Role::kSaved, forward.src_desc()} : program.scratch(forward.src_desc());
    program.reorder(given, read);
  }
  Program::Arguments arguments{{DNNL_ARG_SRC, read},
                               {DNNL_ARG_WEIGHTS, program.read_as(weights, forward.weights_desc())},
                               {DNNL_ARG_DST, {Role::kOutput, forward.dst_desc()}}};
  if (spec.bias) arguments.push_back({DNNL_ARG_BIAS, {Role::kBias, wanted.bias}});
  program.add(forward, std::move(arguments));
  if (!training) return std::make_unique<ProgramOperator>(std::move(traits), std::move(program), std::nullopt);

  traits.backward_reads_inputs = read.role == Role::kInput;
  traits.saved_bytes = read.role == Role::kSaved ? aligned(read.descriptor.get_size()) : 0;
  const Operands operands{read,
                          {Role::kInputGradient, given.descriptor},
                          weights,
                          {Role::kWeightsGradient, weights.descriptor},
                          {Role::kOutputGradient, forward.dst_desc()}};
  Program backward = make_backward(engine, options, wanted, window, forward, operands);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(program), std::move(backward));
}

}  // namespace arbalest::engine::cpu
