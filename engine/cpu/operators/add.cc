#include "engine/cpu/operators/add.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/elements.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

using elementwise::load;
using elementwise::store;

namespace {

// Prefers the layout of convolutions: the layout of the input that is not in canonical order.
Layout choose_output(const AddSpec& spec) {
  const bool a_is_plain = descriptor(spec.a) == plain_descriptor(spec.a.shape(), spec.a.dtype());
  return make_layout(with_type(descriptor(a_is_plain ? spec.b : spec.a), joint_type(spec.a.dtype(), spec.b.dtype())));
}

Program make_forward(const dnnl::engine& engine, const AddSpec& spec, const Layout& output) {
  Program program(engine);
  const dnnl::memory::desc lies = descriptor(output);
  const Operand a = program.read_as({input_role(0), descriptor(spec.a)}, lies);
  const Operand b = program.read_as({input_role(1), descriptor(spec.b)}, lies);
  add_sum(program, a, b, spec.activation.has_value(), {Role::kOutput, lies});
  return program;
}

// Copies the gradient of one input to another input.
void copy_gradient(Program& program, const Layout& output, Role from, Role to) {
  program.add([=, bytes = static_cast<std::int64_t>(output.bytes())](const TaskContext& context,
                                                                     const Addresses& addresses) {
    const auto* same = static_cast<const std::byte*>(addresses[from]);
    auto* gradient = static_cast<std::byte*>(addresses[to]);
    if (gradient == same) return;
    for_ranges(context.threads, bytes,
               [=](std::int64_t begin, std::int64_t end) { std::copy(same + begin, same + end, gradient + begin); });
  });
}

// The first input with the output's layout gets the gradient. A second such input gets a copy if its address differs.
// Inputs with another layout get a reordered copy.
Program make_backward(const dnnl::engine& engine, const AddSpec& spec, const Layout& output,
                      const PrepareOptions& options) {
  Program program(engine);
  const bool relu = spec.activation.has_value();
  const Layout* inputs[] = {&spec.a, &spec.b};
  std::optional<Role> first;
  for (std::size_t k = 0; k < 2; ++k) {
    if (!options.wants_gradient(k) || *inputs[k] != output) continue;
    const Role role = input_gradient_role(k);
    if (!first.has_value()) {
      first = role;
      add_sum_gradient(program, relu, {role, descriptor(output)});
    } else {
      copy_gradient(program, output, *first, role);
    }
  }
  Operand gradient{first.value_or(Role::kOutputGradient), descriptor(output)};
  for (std::size_t k = 0; k < 2; ++k) {
    if (!options.wants_gradient(k) || *inputs[k] == output) continue;
    if (relu && !first.has_value()) {
      gradient = program.scratch(descriptor(output));
      add_sum_gradient(program, relu, gradient);
    }
    program.reorder(gradient, {input_gradient_role(k), descriptor(*inputs[k])});
  }
  return program;
}

}  // namespace

// The loops include the padding, which stays 0.

void add_sum(Program& program, const Operand& a, const Operand& b, bool relu, const Operand& sum) {
  const std::int64_t elements = elements_of(sum.descriptor);
  with_elements(dtype_of(sum.descriptor), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* left = a.at<const T>(addresses);
      const auto* right = b.at<const T>(addresses);
      auto* written = sum.at<T>(addresses);
      for_ranges(context.threads, elements, [=](std::int64_t begin, std::int64_t end) {
        if (relu) {
#pragma omp simd
          for (std::int64_t i = begin; i < end; ++i) {
            const float value = load(left[i]) + load(right[i]);
            store(value < 0.0F ? 0.0F : value, written[i]);  // NaN stays NaN
          }
        } else {
#pragma omp simd
          for (std::int64_t i = begin; i < end; ++i) store(load(left[i]) + load(right[i]), written[i]);
        }
      });
    });
  });
}

void add_sum_gradient(Program& program, bool relu, const Operand& gradient) {
  const std::int64_t elements = elements_of(gradient.descriptor);
  with_elements(dtype_of(gradient.descriptor), [&]<typename T>(ElementKind<T>) {
    program.add([=](const TaskContext& context, const Addresses& addresses) {
      const auto* arriving = static_cast<const T*>(addresses[Role::kOutputGradient]);
      const auto* value = static_cast<const T*>(addresses[Role::kOutput]);
      auto* written = gradient.at<T>(addresses);
      if (!relu && written == arriving) return;
      for_ranges(context.threads, elements, [=](std::int64_t begin, std::int64_t end) {
        if (relu) {
#pragma omp simd
          for (std::int64_t i = begin; i < end; ++i) {
            const float passed = load(arriving[i]);
            store(load(value[i]) > 0.0F ? passed : 0.0F, written[i]);
          }
        } else {
          std::copy(arriving + begin, arriving + end, written + begin);
        }
      });
    });
  });
}

std::unique_ptr<Operator> make_operator(const AddSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  ARBALEST_CHECK(spec.a.shape() == spec.b.shape());
  ARBALEST_CHECK(spec.activation.value_or(ActivationKind::kRelu) == ActivationKind::kRelu);
  const bool training = options.mode == OperatorMode::kTraining;
  OperatorTraits traits;
  traits.output = choose_output(spec);
  traits.symmetric_inputs = true;
  traits.in_place_forward = true;
  traits.in_place_backward = training;
  traits.passes_gradient = training && !spec.activation.has_value();
  traits.backward_reads_output = training && spec.activation.has_value();
  Program forward = make_forward(engine, spec, traits.output);
  std::optional<Program> backward;
  if (training) backward = make_backward(engine, spec, traits.output, options);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
