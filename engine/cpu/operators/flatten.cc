#include <cstring>

#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/program.h"
#include "engine/cpu/operators/operators.h"

namespace arbalest::engine::cpu {

namespace {

// Copies between a tensor in its layout and the same tensor in canonical order.
Program make_copy(const dnnl::engine& engine, const Operand& from, const Operand& to) {
  Program program(engine);
  if (from.descriptor != to.descriptor) {
    program.reorder(from, to);
    return program;
  }
  const std::size_t bytes = from.descriptor.get_size();
  program.add([from = from.role, to = to.role, bytes](const TaskContext&, const Addresses& addresses) {
    if (addresses[from] != addresses[to]) std::memcpy(addresses[to], addresses[from], bytes);
  });
  return program;
}

}  // namespace

std::unique_ptr<Operator> make_operator(const FlattenSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  ARBALEST_CHECK(input.rank() >= 2);
  const dnnl::memory::desc tensor = descriptor(spec.input);
  const dnnl::memory::desc plain = plain_descriptor(input, spec.input.dtype());
  const bool is_plain = tensor == plain;

  OperatorTraits traits;
  traits.output = make_layout(plain_descriptor({input[0], input.elements_per_example()}, spec.input.dtype()));
  traits.in_place_forward = is_plain;
  Program forward = make_copy(engine, {Role::kInput, tensor}, {Role::kOutput, plain});
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::nullopt);
  }
  traits.in_place_backward = is_plain;
  traits.passes_gradient = is_plain;
  Program backward(engine);
  if (options.input_gradient) {
    backward = make_copy(engine, {Role::kOutputGradient, plain}, {Role::kInputGradient, tensor});
  }
  return std::make_unique<ProgramOperator>(std::move(traits), std::move(forward), std::move(backward));
}

}  // namespace arbalest::engine::cpu
