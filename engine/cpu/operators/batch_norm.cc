#include "engine/ops/batch_norm.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/cpu/normalization/blocked_operator.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/add.h"
#include "engine/cpu/operators/operators.h"

namespace arbalest::engine::cpu {

namespace {

// Chooses the kernel for the input's layout; if there is none, the kernel for canonical order. The kernel does not
// support an addend, so with one ReLU is applied afterwards.
BatchNormalization choose_kernels(const BatchNormSpec& spec, OperatorMode mode, const dnnl::engine& engine) {
  const Shape& shape = spec.input.shape();
  const bool relu = spec.relu && !spec.addend.has_value();
  for (const auto& layout : {descriptor(spec.input), plain_descriptor(shape, spec.input.dtype())}) {
    if (auto kernels = find_batch_normalization(engine, mode, layout, spec.epsilon, relu, spec.frozen_statistics))
      return *kernels;
  }
  fail(ErrorKind::kDevice, "oneDNN has no fast kernel for batch norm of {}", to_string(shape));
}

// Values that forward saves for backward: the batch's statistics and, with ReLU, where it was active. Frozen statistics
// are parameters, and nothing of them is saved.
struct Saved {
  Saved(std::int64_t channels, const dnnl::memory::desc& passed)
      : mean{Role::kSaved, plain_descriptor({channels}, DType::kFloat32)},
        variance{Role::kSaved, mean.descriptor, aligned(mean.descriptor.get_size())},
        workspace{Role::kSaved, passed, 2 * variance.offset} {}

  // The statistics with which the layer normalizes.
  Operand used_mean(bool measured) const { return measured ? mean : Operand{Role::kMean, mean.descriptor}; }
  Operand used_variance(bool measured) const { return measured ? variance : Operand{Role::kVariance, mean.descriptor}; }
  bool has_workspace() const { return workspace.descriptor.get_size() > 0; }
  std::size_t bytes() const { return workspace.offset + aligned(workspace.descriptor.get_size()); }

  Operand mean;
  Operand variance;
  Operand workspace;
};

// Writes the targets of the running statistics.
void hand_over_statistics(Program& program, const Saved& saved, std::int64_t channels, std::int64_t numbers) {
  program.add([saved, channels, numbers](const TaskContext&, const Addresses& addresses) {
    std::copy_n(saved.mean.at<const float>(addresses), channels, static_cast<float*>(addresses[Role::kMeanGradient]));
    const auto unbiased = static_cast<float>(static_cast<double>(numbers) / static_cast<double>(numbers - 1));
    std::transform(saved.variance.at<const float>(addresses), saved.variance.at<const float>(addresses) + channels,
                   static_cast<float*>(addresses[Role::kVarianceGradient]),
                   [unbiased](float variance) { return unbiased * variance; });
  });
}

// output = ReLU(output + addend)
void add_addend(Program& program, const Layout& addend, const dnnl::memory::desc& output) {
  const Operand sum{Role::kOutput, output};
  add_sum(program, sum, program.read_as({input_role(1), descriptor(addend)}, output), true, sum);
}

Program make_backward(const BatchNormSpec& spec, const PrepareOptions& options, const BatchNormalization& kernels,
                      const Saved& saved, const dnnl::engine& engine) {
  const auto& kernel = *kernels.backward;
  const dnnl::memory::desc& vector = saved.mean.descriptor;
  Program program(engine);
  Operand arriving{Role::kOutputGradient, kernel.diff_dst_desc()};
  if (spec.addend.has_value()) {
    const AddendGradient of_addend(spec, options, arriving.descriptor, program);
    add_sum_gradient(program, true, of_addend.place);
    arriving = of_addend.place;
    of_addend.deliver(program);
  }
  const Operand input = program.read_as({Role::kInput, descriptor(spec.input)}, kernel.src_desc());
  const Operand target{Role::kInputGradient, descriptor(spec.input)};
  // The kernel computes this gradient, wanted or not.
  const bool is_wanted = options.wants_gradient(0);
  const Operand produced =
      is_wanted ? program.write_as(target, kernel.diff_src_desc()) : program.scratch(kernel.diff_src_desc());
  Program::Arguments arguments{{DNNL_ARG_SRC, input},
                               {DNNL_ARG_MEAN, saved.used_mean(spec.measures(true))},
                               {DNNL_ARG_VARIANCE, saved.used_variance(spec.measures(true))},
                               {DNNL_ARG_SCALE, {Role::kWeights, vector}},
                               {DNNL_ARG_SHIFT, {Role::kBias, vector}},  // required, though nothing reads it
                               {DNNL_ARG_DIFF_DST, arriving},
                               {DNNL_ARG_DIFF_SRC, produced},
                               {DNNL_ARG_DIFF_SCALE, {Role::kWeightsGradient, vector}},
                               {DNNL_ARG_DIFF_SHIFT, {Role::kBiasGradient, vector}}};
  if (saved.has_workspace()) arguments.push_back({DNNL_ARG_WORKSPACE, saved.workspace});
  program.add(kernel, std::move(arguments));
  if (is_wanted) program.deliver(produced, target);
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const BatchNormSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  ARBALEST_CHECK(!spec.addend.has_value() || (spec.relu && spec.addend->shape() == spec.input.shape()));
  const bool training = options.mode == OperatorMode::kTraining;
  const std::int64_t channels = spec.input.shape()[1];
  const bool measures = spec.measures(training);
  if (measures) numbers_of_channel(spec);
  if (const auto images = blocked_images(descriptor(spec.input))) {
    return make_blocked_batch_norm(spec, *images, options, engine);
  }
  const BatchNormalization kernels = choose_kernels(spec, options.mode, engine);
  const Saved saved(channels, kernels.forward.workspace_desc());
  const dnnl::memory::desc& vector = saved.mean.descriptor;

  OperatorTraits traits = batch_norm_traits(spec, make_layout(kernels.forward.dst_desc()), training);
  // The addend is read after the output is written, and may be the input's buffer.
  if (spec.addend.has_value()) traits.in_place_forward = false;
  if (training) traits.saved_bytes = saved.bytes();

  Program forward(engine);
  Program::Arguments arguments{
      {DNNL_ARG_SRC, forward.read_as({Role::kInput, descriptor(spec.input)}, kernels.forward.src_desc())},
      {DNNL_ARG_MEAN, saved.used_mean(measures)},
      {DNNL_ARG_VARIANCE, saved.used_variance(measures)},
      {DNNL_ARG_SCALE, {Role::kWeights, vector}},
      {DNNL_ARG_SHIFT, {Role::kBias, vector}},
      {DNNL_ARG_DST, {Role::kOutput, kernels.forward.dst_desc()}}};
  if (training && saved.has_workspace()) arguments.push_back({DNNL_ARG_WORKSPACE, saved.workspace});
  forward.add(kernels.forward, std::move(arguments));
  if (measures) hand_over_statistics(forward, saved, channels, numbers_of_channel(spec));
  if (spec.addend.has_value()) add_addend(forward, *spec.addend, kernels.forward.dst_desc());
  std::optional<Program> backward;
  if (training) backward = make_backward(spec, options, kernels, saved, engine);
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
