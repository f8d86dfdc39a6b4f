#include "engine/cpu/onednn/activation_steps.h"

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"

namespace arbalest::engine::cpu {

ActivationSteps::ActivationSteps(const dnnl::engine& engine, OperatorMode mode, const Layout& tensor,
                                 const ActivationFunction& f)
    : choice_(choose(engine, mode, tensor, f)), reads_input_(differentiates_input(f.kind)) {}

// Returns the kernel for the tensor's layout; if there is none, the kernel for canonical order.
ActivationSteps::Choice ActivationSteps::choose(const dnnl::engine& engine, OperatorMode mode, const Layout& tensor,
                                                const ActivationFunction& f) {
  for (const auto& layout : {descriptor(tensor), plain_descriptor(tensor.shape(), tensor.dtype())}) {
    if (auto kernels = find_activation(engine, mode, layout, f)) return {*kernels, layout};
  }
  fail(ErrorKind::kDevice, "oneDNN has no fast kernel for an activation of {}", to_string(tensor.shape()));
}

void ActivationSteps::forward(Program& program, const Operand& input, const Operand& output) const {
  const Operand read = program.read_as(input, choice_.layout);
  const Operand written = read.role == Role::kScratch ? read : output;
  program.add(choice_.kernels.forward, {{DNNL_ARG_SRC, read}, {DNNL_ARG_DST, written}});
  program.deliver(written, output);
}

void ActivationSteps::backward(Program& program, const Operand& read, const Operand& output_gradient,
                               const Operand& input_gradient) const {
  const Operand arriving = program.read_as(output_gradient, choice_.layout);
  const Operand leaving = arriving.role == Role::kScratch ? arriving : input_gradient;
  program.add(*choice_.kernels.backward,
              {{reads_input_ ? DNNL_ARG_SRC : DNNL_ARG_DST, program.read_as(read, choice_.layout)},
               {DNNL_ARG_DIFF_DST, arriving},
               {DNNL_ARG_DIFF_SRC, leaving}});
  program.deliver(leaving, input_gradient);
}

}  // namespace arbalest::engine::cpu
