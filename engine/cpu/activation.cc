#include "engine/cpu/layout.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/primitives.h"
#include "engine/cpu/program.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

struct Choice {
  Activation kernels;
  dnnl::memory::desc layout;  // that the kernels work in
};

// The kernel for the tensor as it lies; where there is none, for the tensor in canonical order.
Choice choose_kernels(const ActivationSpec& spec, OperatorMode mode, const dnnl::engine& engine) {
  const dnnl::memory::desc plain = plain_descriptor(spec.input.shape(), DType::kFloat32);
  for (const auto& layout : {descriptor(spec.input), plain}) {
    if (auto kernels = find_activation(engine, mode, layout, spec.kind)) return {*kernels, layout};
  }
  fail(ErrorKind::kDevice, "oneDNN has no fast kernel for an activation of {}", to_string(spec.input.shape()));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const Operand output{Role::kOutput, tensor};
  const auto [kernels, layout] = choose_kernels(spec, options.mode, engine);

  OperatorTraits traits;
  traits.output = spec.input;
  traits.in_place_forward = true;
  Program forward(engine);
  const Operand read = forward.read_as({Role::kInput, tensor}, layout);
  const Operand written = read.role == Role::kScratch ? read : output;
  forward.add(kernels.forward, {{DNNL_ARG_SRC, read}, {DNNL_ARG_DST, written}});
  forward.deliver(written, output);
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  }

  traits.backward_reads_output = true;
  traits.in_place_backward = true;
  Program backward(engine);
  if (options.input_gradient) {
    const Operand target{Role::kInputGradient, tensor};
    const Operand arriving = backward.read_as({Role::kOutputGradient, tensor}, layout);
    const Operand leaving = arriving.role == Role::kScratch ? arriving : target;
    backward.add(*kernels.backward, {{DNNL_ARG_DST, backward.read_as(output, layout)},
                                     {DNNL_ARG_DIFF_DST, arriving},
                                     {DNNL_ARG_DIFF_SRC, leaving}});
    backward.deliver(leaving, target);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
