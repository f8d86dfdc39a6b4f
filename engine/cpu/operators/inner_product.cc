#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/rows.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

struct Extents {
  std::int64_t examples;
  std::int64_t features;
};

// The tensor as float32; tensors of another type are copied.
dnnl::memory::desc floats_of(const Layout& layout) { return plain_descriptor(layout.shape(), DType::kFloat32); }

Operand read_input(Program& program, const InnerProductSpec& spec, std::size_t k) {
  const Layout& input = k == 0 ? spec.a : spec.b;
  return program.read_as({input_role(k), descriptor(input)}, floats_of(input));
}

Program make_forward(const dnnl::engine& engine, const InnerProductSpec& spec, const Layout& layout,
                     const Extents& of) {
  Program program(engine);
  const Operand inputs[] = {read_input(program, spec, 0), read_input(program, spec, 1)};
  const Operand target{Role::kOutput, descriptor(layout)};
  const Operand written = program.write_as(target, floats_of(layout));
  program.add([=, bias = spec.bias](const TaskContext& context, const Addresses& addresses) {
    const auto* a = inputs[0].at<const float>(addresses);
    const auto* b = inputs[1].at<const float>(addresses);
    const float added = bias ? *static_cast<const float*>(addresses[Role::kWeights]) : 0.0F;
    auto* output = written.at<float>(addresses);
    for_each_part(threads_for_rows(context.threads, of.examples, of.features), of.examples, [&](std::int64_t n) {
      output[n] = dot(a + n * of.features, b + n * of.features, of.features) + added;
    });
  });
  program.deliver(written, target);
  return program;
}

// Writes the gradient of input k: each row of the other input times the output's gradient.
void add_gradient(Program& program, const InnerProductSpec& spec, const Operand& output_gradient, const Extents& of,
                  std::size_t k) {
  const Layout& input = k == 0 ? spec.a : spec.b;
  const Operand read = read_input(program, spec, 1 - k);
  const Operand target{input_gradient_role(k), descriptor(input)};
  const Operand written = program.write_as(target, floats_of(input));
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* other = read.at<const float>(addresses);
    const auto* arriving = output_gradient.at<const float>(addresses);
    auto* gradient = written.at<float>(addresses);
    for_each_part(threads_for_rows(context.threads, of.examples, of.features), of.examples, [&](std::int64_t n) {
      for (std::int64_t f = n * of.features; f < (n + 1) * of.features; ++f) gradient[f] = arriving[n] * other[f];
    });
  });
  program.deliver(written, target);
}

void add_bias_gradient(Program& program, const Operand& output_gradient, const Extents& of) {
  program.add([=](const TaskContext&, const Addresses& addresses) {
    const auto* arriving = output_gradient.at<const float>(addresses);
    double sum = 0.0;
    for (std::int64_t n = 0; n < of.examples; ++n) sum += static_cast<double>(arriving[n]);
    *static_cast<float*>(addresses[Role::kWeightsGradient]) = static_cast<float>(sum);
  });
}

}  // namespace

std::unique_ptr<Operator> make_operator(const InnerProductSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.a.shape();
  ARBALEST_CHECK(shape.rank() == 2 && descriptor(spec.a) == plain_descriptor(shape, spec.a.dtype()) &&
                 descriptor(spec.b) == plain_descriptor(shape, spec.b.dtype()));
  const DType dtype = joint_type(spec.a.dtype(), spec.b.dtype());
  const Extents of{shape[0], shape[1]};
  OperatorTraits traits;
  const Layout output = make_layout(plain_descriptor({of.examples, 1}, dtype));
  traits.output = output;
  if (spec.bias) traits.parameters = {make_layout(plain_descriptor({1}, DType::kFloat32))};
  traits.backward_reads_inputs = true;
  std::optional<Program> backward;
  if (options.mode == OperatorMode::kTraining) {
    backward.emplace(engine);
    const Operand gradient = backward->read_as({Role::kOutputGradient, descriptor(output)}, floats_of(output));
    for (std::size_t k = 0; k < 2; ++k) {
      if (options.wants_gradient(k)) add_gradient(*backward, spec, gradient, of, k);
    }
    if (spec.bias) add_bias_gradient(*backward, gradient, of);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), make_forward(engine, spec, output, of),
                                           std::move(backward));
}

}  // namespace arbalest::engine::cpu
