#include <optional>
#include <utility>

#include "engine/cpu/onednn/activation_steps.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/operators/operators.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const ActivationSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const ActivationSteps steps(engine, options.mode, spec.input, spec.function);
  const bool training = options.mode == OperatorMode::kTraining;

  OperatorTraits traits;
  traits.output = spec.input;
  const bool reads_input = differentiates_input(spec.function.kind);
  traits.in_place_forward = !training || !reads_input;
  traits.backward_reads_inputs = training && reads_input;
  traits.backward_reads_output = training && !reads_input;
  traits.in_place_backward = training;
  Program forward(engine);
  steps.forward(forward, {Role::kInput, tensor}, {Role::kOutput, tensor});
  std::optional<Program> backward;
  if (training) {
    backward.emplace(engine);
    if (options.input_gradient) {
      steps.backward(*backward, {reads_input ? Role::kInput : Role::kOutput, tensor}, {Role::kOutputGradient, tensor},
                     {Role::kInputGradient, tensor});
    }
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
