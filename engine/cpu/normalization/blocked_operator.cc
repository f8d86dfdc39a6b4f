#include "engine/cpu/normalization/blocked_operator.h"

#include "engine/base/alignment.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/runtime/elements.h"

namespace arbalest::engine::cpu {

namespace {

Operand floats(Role role, std::int64_t count) { return {role, plain_descriptor({count}, DType::kFloat32)}; }

// Parameters and statistics by role.
const float* given(const Addresses& addresses, Role role) { return static_cast<const float*>(addresses[role]); }
float* wanted(const Addresses& addresses, Role role) { return static_cast<float*>(addresses[role]); }

// Data of an operator that its steps copy.
struct Plan {
  BlockedImages images;
  float epsilon;
  bool relu;
  bool has_addend;
  Operand terms;  // NormTerms

  NormTerms terms_at(const Addresses& addresses) const {
    return NormTerms::in(terms.at<float>(addresses), images.places());
  }
};

template <typename T>
void add_forward(Program& program, const Plan& plan, const BatchNormSpec& spec, bool measures) {
  const Operand addend =
      plan.has_addend ? program.read_as({input_role(1), descriptor(*spec.addend)}, descriptor(spec.input)) : Operand{};
  const Operand partials = program.scratch(floats(Role::kScratch, partial_floats(plan.images)).descriptor);
  program.add([=](const TaskContext& context, const Addresses& addresses) {
    const auto* input = static_cast<const T*>(addresses[Role::kInput]);
    const NormTerms terms = plan.terms_at(addresses);
    const float* scale = given(addresses, Role::kWeights);
    const float* shift = given(addresses, Role::kBias);
    if (measures) {
      measure_blocked(plan.images, input, scale, shift, plan.epsilon, partials.at<float>(addresses), terms,
                      wanted(addresses, Role::kMeanGradient), wanted(addresses, Role::kVarianceGradient),
                      context.threads);
    } else {
      use_statistics(plan.images, scale, shift, given(addresses, Role::kMean), given(addresses, Role::kVariance),
                     plan.epsilon, terms);
    }
    normalize_blocked(plan.images, input, plan.has_addend ? addend.at<const T>(addresses) : nullptr, terms, plan.relu,
                      static_cast<T*>(addresses[Role::kOutput]), context.threads);
  });
}

template <typename T>
void add_backward(Program& program, const Plan& plan, const BatchNormSpec& spec, const PrepareOptions& options) {
  const Operand partials = program.scratch(floats(Role::kScratch, partial_floats(plan.images)).descriptor);
  std::optional<AddendGradient> of_addend;
  if (plan.has_addend) of_addend.emplace(spec, options, descriptor(spec.input), program);
  const Operand addend_gradient = plan.has_addend ? of_addend->place : Operand{};
  program.add([=, input_gradient = options.wants_gradient(0), frozen_statistics = spec.frozen_statistics](
                  const TaskContext& context, const Addresses& addresses) {
    const NormTerms terms = plan.terms_at(addresses);
    BlockedGradients<T> task{.input = static_cast<const T*>(addresses[Role::kInput]),
                             .output_gradient = static_cast<const T*>(addresses[Role::kOutputGradient]),
                             .relu = plan.relu,
                             .constant_statistics = frozen_statistics,
                             .scale_gradient = wanted(addresses, Role::kWeightsGradient),
                             .shift_gradient = wanted(addresses, Role::kBiasGradient)};
    if (plan.has_addend) {
      task.output = static_cast<const T*>(addresses[Role::kOutput]);
      task.addend_gradient = addend_gradient.at<T>(addresses);
    }
    if (input_gradient) task.input_gradient = static_cast<T*>(addresses[Role::kInputGradient]);
    blocked_gradients(plan.images, task, terms, partials.at<float>(addresses), context.threads);
  });
  if (of_addend.has_value()) of_addend->deliver(program);
}

}  // namespace

OperatorTraits batch_norm_traits(const BatchNormSpec& spec, const Layout& output, bool training) {
  OperatorTraits traits;
  traits.output = output;
  traits.parameters.assign(kBatchNormParameters,
                           make_layout(plain_descriptor({spec.input.shape()[1]}, DType::kFloat32)));
  const bool in_place = output == spec.input;
  traits.in_place_forward = in_place && !training;
  traits.in_place_backward = in_place && training && (!spec.addend.has_value() || *spec.addend == output);
  traits.in_place_backward_input = spec.addend.has_value() ? 1 : 0;  // its gradient is written first
  traits.backward_reads_inputs = training;
  traits.backward_reads_first_input_only = training && spec.addend.has_value();
  traits.backward_reads_output = training && spec.addend.has_value();
  return traits;
}

AddendGradient::AddendGradient(const BatchNormSpec& spec, const PrepareOptions& options,
                               const dnnl::memory::desc& output, Program& program)
    : target{input_gradient_role(1), descriptor(*spec.addend)}, is_wanted(options.wants_gradient(1)) {
  place = is_wanted ? program.write_as(target, output) : program.scratch(output);
}

void AddendGradient::deliver(Program& program) const {
  if (is_wanted) program.deliver(place, target);
}

std::unique_ptr<Operator> make_blocked_batch_norm(const BatchNormSpec& spec, const BlockedImages& images,
                                                  const PrepareOptions& options, const dnnl::engine& engine) {
  const bool training = options.mode == OperatorMode::kTraining;
  OperatorTraits traits = batch_norm_traits(spec, spec.input, training);
  Plan plan{images, spec.epsilon, spec.relu, spec.addend.has_value(),
            floats(Role::kSaved, NormTerms::kVectors * images.places())};
  if (training) traits.saved_bytes = aligned(plan.terms.descriptor.get_size());

  Program forward(engine);
  if (!training) plan.terms = forward.scratch(plan.terms.descriptor);
  std::optional<Program> backward;
  if (training) backward.emplace(engine);
  with_elements(spec.input.dtype(), [&]<typename T>(ElementKind<T>) {
    add_forward<T>(forward, plan, spec, spec.measures(training));
    if (training) add_backward<T>(*backward, plan, spec, options);
  });
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
