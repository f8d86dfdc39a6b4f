#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/runtime/elements.h"

namespace arbalest::engine::cpu {

namespace {

// Position of input k in the output.
struct Part {
  std::int64_t first;  // first channel
  std::int64_t channels;
};

std::vector<Part> parts_of(const ConcatSpec& spec) {
  std::vector<Part> parts;
  std::int64_t first = 0;
  for (const Layout& input : spec.inputs) {
    parts.push_back({first, input.shape()[1]});
    first += input.shape()[1];
  }
  return parts;
}

// The part as a tensor; none if it does not begin at the border of a block of channels.
std::optional<dnnl::memory::desc> view(const dnnl::memory::desc& output, const Part& part) {
  dnnl::memory::dims extents = output.dims();
  dnnl::memory::dims offsets(extents.size(), 0);
  extents[1] = part.channels;
  offsets[1] = part.first;
  const dnnl::memory::desc inside = output.submemory_desc(extents, offsets, true);
  if (inside.is_zero()) return std::nullopt;
  return inside;
}

bool has_all_views(const dnnl::memory::desc& output, const std::vector<Part>& parts) {
  return std::ranges::all_of(parts, [&](const Part& part) { return view(output, part).has_value(); });
}

DType output_type(const ConcatSpec& spec) {
  DType dtype = DType::kFloat32;
  for (const Layout& input : spec.inputs) dtype = joint_type(dtype, input.dtype());
  return dtype;
}

// Chooses the layout of the first input that is not in canonical order, if all parts then begin at borders of blocks;
// else canonical order.
dnnl::memory::desc choose_output(const ConcatSpec& spec, const std::vector<Part>& parts) {
  const Shape shape = concat_shape(spec);
  const DType dtype = output_type(spec);
  for (const Layout& input : spec.inputs) {
    const dnnl::memory::desc lies = with_type(descriptor(input), dtype);
    if (lies == plain_descriptor(input.shape(), dtype)) continue;
    const auto output = with_extents(lies, dims(shape));
    if (output.has_value() && has_all_views(*output, parts)) return *output;
  }
  return plain_descriptor(shape, dtype);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const ConcatSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const std::vector<Part> parts = parts_of(spec);
  const dnnl::memory::desc output = choose_output(spec, parts);
  const bool training = options.mode == OperatorMode::kTraining;
  OperatorTraits traits;
  traits.output = make_layout(output);
  Program forward(engine);
  std::optional<Program> backward;
  if (training) backward.emplace(engine);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const dnnl::memory::desc input = descriptor(spec.inputs[k]);
    const dnnl::memory::desc inside = *view(output, parts[k]);
    forward.reorder({input_role(k), input}, {Role::kOutput, inside});
    if (options.wants_gradient(k)) {
      backward->reorder({Role::kOutputGradient, inside}, {input_gradient_role(k), input});
    }
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
