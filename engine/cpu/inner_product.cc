#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/program.h"
#include "engine/cpu/rows.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

struct Extents {
  std::int64_t examples;
  std::int64_t features;
};

Program make_forward(const dnnl::engine& engine, const Extents& of, bool bias) {
  Program program(engine);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* a = static_cast<const float*>(addresses[input_role(0)]);
    const auto* b = static_cast<const float*>(addresses[input_role(1)]);
    const float added = bias ? *static_cast<const float*>(addresses[Role::kWeights]) : 0.0F;
    auto* output = static_cast<float*>(addresses[Role::kOutput]);
    for_each_part(threads_for_rows(context.threads, of.examples, of.features), of.examples, [&](std::int64_t n) {
      output[n] = dot(a + n * of.features, b + n * of.features, of.features) + added;
    });
  });
  return program;
}

// The gradient of input k: each row of the other one, times what arrives.
void add_gradient(Program& program, const Extents& of, std::size_t k) {
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* other = static_cast<const float*>(addresses[input_role(1 - k)]);
    const auto* arriving = static_cast<const float*>(addresses[Role::kOutputGradient]);
    auto* gradient = static_cast<float*>(addresses[input_gradient_role(k)]);
    for_each_part(threads_for_rows(context.threads, of.examples, of.features), of.examples, [&](std::int64_t n) {
      for (std::int64_t f = n * of.features; f < (n + 1) * of.features; ++f) gradient[f] = arriving[n] * other[f];
    });
  });
}

void add_bias_gradient(Program& program, const Extents& of) {
  program.add([=](const TaskContext&, const Addresses& addresses) {
    const auto* arriving = static_cast<const float*>(addresses[Role::kOutputGradient]);
    double sum = 0.0;
    for (std::int64_t n = 0; n < of.examples; ++n) sum += static_cast<double>(arriving[n]);
    *static_cast<float*>(addresses[Role::kWeightsGradient]) = static_cast<float>(sum);
  });
}

}  // namespace

std::unique_ptr<Operator> make_operator(const InnerProductSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& shape = spec.a.shape();
  const dnnl::memory::desc plain = plain_descriptor(shape, DType::kFloat32);
  ARBALEST_CHECK(shape.rank() == 2 && descriptor(spec.a) == plain && descriptor(spec.b) == plain);
  const Extents of{shape[0], shape[1]};
  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({of.examples, 1}, DType::kFloat32));
  if (spec.bias) traits.parameters = {make_layout(plain_descriptor({1}, DType::kFloat32))};
  traits.backward_reads_inputs = true;
  std::optional<Program> backward;
  if (options.mode == OperatorMode::kTraining) {
    backward.emplace(engine);
    for (std::size_t k = 0; k < 2; ++k) {
      if (options.wants_gradient(k)) add_gradient(*backward, of, k);
    }
    if (spec.bias) add_bias_gradient(*backward, of);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), make_forward(engine, of, spec.bias), std::move(backward));
}

}  // namespace arbalest::engine::cpu
