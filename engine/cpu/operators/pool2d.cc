#include <cstdint>
#include <limits>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"

namespace arbalest::engine::cpu {

namespace {

// Whether oneDNN passes gradients back to wrong elements: of bfloat16 images, if the number of an element in its window
// takes more than a byte (seen with oneDNN 2.6.3 and channels-last images; tests/engine/pool2d_test.cc).
bool is_broken(const Pool2dSpec& spec, const dnnl::memory::desc& layout) {
  const std::int64_t taps = spec.window.kernel.height * spec.window.kernel.width;
  return spec.kind == PoolKind::kMax && spec.input.dtype() == DType::kBFloat16 &&
         taps > std::numeric_limits<std::uint8_t>::max() &&
         layout != plain_descriptor(spec.input.shape(), DType::kBFloat16);
}

// Chooses the kernel for the input's layout; if there is none, the kernel for canonical order.
Pooling choose_kernels(const Pool2dSpec& spec, const PrepareOptions& options, const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  for (const auto& layout : {descriptor(spec.input), plain_descriptor(input, spec.input.dtype())}) {
    if (is_broken(spec, layout)) continue;
    if (auto kernels = find_pooling(engine, options.mode, layout, spec)) return *kernels;
  }
  fail(ErrorKind::kDevice, "oneDNN has no fast kernel for pooling {} with a window of {}x{}", to_string(input),
       spec.window.kernel.height, spec.window.kernel.width);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const Pool2dSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  if (keeps_lanes(spec)) return make_lane_pool2d(spec, options, engine);
  const Pooling kernels = choose_kernels(spec, options, engine);
  const Operand workspace{Role::kSaved, kernels.forward.workspace_desc()};  // stores which element was each maximum
  const bool has_workspace = workspace.descriptor.get_size() > 0;

  OperatorTraits traits;
  traits.output = make_layout(kernels.forward.dst_desc());
  traits.saved_bytes = aligned(workspace.descriptor.get_size());

  Program forward(engine);
  const Operand input = forward.read_as({Role::kInput, descriptor(spec.input)}, kernels.forward.src_desc());
  Program::Arguments arguments{{DNNL_ARG_SRC, input}, {DNNL_ARG_DST, {Role::kOutput, kernels.forward.dst_desc()}}};
  if (has_workspace) arguments.push_back({DNNL_ARG_WORKSPACE, workspace});
  forward.add(kernels.forward, std::move(arguments));
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  }

  Program backward(engine);
  if (options.input_gradient) {
    const Operand input_gradient{Role::kInputGradient, descriptor(spec.input)};
    const Operand produced = backward.write_as(input_gradient, kernels.backward->diff_src_desc());
    Program::Arguments gradients{{DNNL_ARG_DIFF_DST, {Role::kOutputGradient, kernels.forward.dst_desc()}},
                                 {DNNL_ARG_DIFF_SRC, produced}};
    if (has_workspace) gradients.push_back({DNNL_ARG_WORKSPACE, workspace});
    backward.add(*kernels.backward, std::move(gradients));
    backward.deliver(produced, input_gradient);
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
