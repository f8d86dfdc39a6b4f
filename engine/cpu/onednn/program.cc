#include "engine/cpu/onednn/program.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cpu/runtime/errors.h"
#include "engine/cpu/runtime/stream.h"

namespace arbalest::engine::cpu {

namespace {

// oneDNN's C++ execute() builds its argument array on each call; this class keeps it.
class BoundProgram final : public Task {
 public:
  explicit BoundProgram(const dnnl::engine& engine, const Addresses& addresses)
      : engine_(engine), stream_(engine), addresses_(addresses) {}

  void add(const dnnl::primitive& primitive) { steps_.emplace_back(Bound{primitive, {}, {}}); }
  void add_argument(int argument, const dnnl::memory::desc& descriptor, void* address) {
    auto& bound = std::get<Bound>(steps_.back());
    bound.memories.emplace_back(descriptor, engine_, address);
    bound.arguments.push_back({argument, bound.memories.back().get()});
  }
  void add(const Program::Function& function) { steps_.emplace_back(function); }

  void run(const TaskContext& context) override {
    for (const auto& step : steps_) {
      if (const auto* bound = std::get_if<Bound>(&step)) {
        execute(*bound);
      } else {
        std::get<Program::Function>(step)(context, addresses_);
      }
    }
  }

 private:
  struct Bound {
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  void execute(const Bound& bound) const {
    dnnl::error::wrap_c_api(dnnl_primitive_execute(bound.primitive.get(), stream_.get(),
                                                   static_cast<int>(bound.arguments.size()), bound.arguments.data()),
                            "could not execute a primitive");
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  Addresses addresses_;
  std::vector<std::variant<Bound, Program::Function>> steps_;
};

// Returns null if the span has fewer pointers.
template <typename Pointer>
const void* at(std::size_t index, std::span<Pointer const> pointers) {
  return index < pointers.size() ? pointers[index] : nullptr;
}

template <typename Pointer>
const void* first(std::span<Pointer const> pointers) {
  return at(0, pointers);
}

template <typename Pointer>
const void* second(std::span<Pointer const> pointers) {
  return at(1, pointers);
}

}  // namespace

Operand Program::scratch(const dnnl::memory::desc& descriptor) {
  Operand operand{Role::kScratch, descriptor, buffer_bytes_};
  buffer_bytes_ += aligned(descriptor.get_size());
  return operand;
}

Operand Program::read_as(const Operand& source, const dnnl::memory::desc& wanted) {
  if (source.descriptor == wanted) return source;
  Operand copy = scratch(wanted);
  reorder(source, copy);
  return copy;
}

Operand Program::write_as(const Operand& target, const dnnl::memory::desc& produced) {
  return target.descriptor == produced ? target : scratch(produced);
}

void Program::deliver(const Operand& produced, const Operand& target) {
  if (produced.descriptor != target.descriptor) reorder(produced, target);
}

void Program::add(const dnnl::primitive_desc_base& description, Arguments arguments) {
  const dnnl::memory::desc scratchpad = description.scratchpad_desc();
  scratchpad_bytes_ = std::max(scratchpad_bytes_, aligned(scratchpad.get_size()));
  steps_.emplace_back(PrimitiveStep{dnnl::primitive(description.get()), std::move(arguments), scratchpad});
}

void Program::reorder(const Operand& from, const Operand& to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  add(dnnl::reorder::primitive_desc(engine_, from.descriptor, engine_, to.descriptor, attributes),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

std::unique_ptr<Task> Program::bind(const Addresses& addresses) const {
  auto bound = std::make_unique<BoundProgram>(engine_, addresses);
  for (const auto& step : steps_) {
    if (const auto* function = std::get_if<Function>(&step)) {
      bound->add(*function);
      continue;
    }
    const auto& primitive_step = std::get<PrimitiveStep>(step);
    bound->add(primitive_step.primitive);
    for (const auto& [argument, operand] : primitive_step.arguments) {
      ARBALEST_CHECK(addresses[operand.role] != nullptr);
      bound->add_argument(argument, operand.descriptor, operand.at<void>(addresses));
    }
    if (primitive_step.scratchpad.get_size() > 0) {
      ARBALEST_CHECK(addresses[Role::kScratch] != nullptr);
      const Operand scratchpad{Role::kScratch, primitive_step.scratchpad, buffer_bytes_};
      bound->add_argument(DNNL_ARG_SCRATCHPAD, scratchpad.descriptor, scratchpad.at<void>(addresses));
    }
  }
  return bound;
}

ProgramOperator::ProgramOperator(OperatorTraits traits, Program forward, std::optional<Program> backward)
    : forward_(std::move(forward)), backward_(std::move(backward)) {
  traits_ = std::move(traits);
  traits_.scratch_bytes =
      std::max(forward_.scratch_bytes(), backward_.has_value() ? backward_->scratch_bytes() : std::size_t{0});
}

void ProgramOperator::forward(Stream& stream, const char* label, const ForwardOperands& operands) const {
  Addresses addresses(operands.inputs.size());
  for (std::size_t k = 0; k < operands.inputs.size(); ++k) addresses.set(input_role(k), operands.inputs[k]);
  addresses.set(Role::kLabels, second(operands.inputs));
  addresses.set(Role::kOutput, operands.output);
  addresses.set(Role::kWeights, first(operands.parameters));
  addresses.set(Role::kBias, second(operands.parameters));
  addresses.set(Role::kMean, at(2, operands.parameters));
  addresses.set(Role::kVariance, at(3, operands.parameters));
  addresses.set(Role::kMeanGradient, at(2, operands.parameter_gradients));
  addresses.set(Role::kVarianceGradient, at(3, operands.parameter_gradients));
  addresses.set(Role::kSaved, operands.saved);
  addresses.set(Role::kScratch, operands.scratch);
  addresses.set(Role::kStep, operands.step);
  static_cast<CpuStream&>(stream).submit(translate_errors([&] { return forward_.bind(addresses); }), label);
}

void ProgramOperator::backward(Stream& stream, const char* label, const BackwardOperands& operands) const {
  ARBALEST_CHECK(backward_.has_value());
  Addresses addresses(operands.inputs.size());
  for (std::size_t k = 0; k < operands.inputs.size(); ++k) addresses.set(input_role(k), operands.inputs[k]);
  addresses.set(Role::kLabels, second(operands.inputs));
  addresses.set(Role::kOutput, operands.output);
  addresses.set(Role::kOutputGradient, operands.output_gradient);
  for (std::size_t k = 0; k < operands.input_gradients.size(); ++k) {
    addresses.set(input_gradient_role(k), operands.input_gradients[k]);
  }
  addresses.set(Role::kWeights, first(operands.parameters));
  addresses.set(Role::kBias, second(operands.parameters));
  addresses.set(Role::kMean, at(2, operands.parameters));
  addresses.set(Role::kVariance, at(3, operands.parameters));
  addresses.set(Role::kWeightsGradient, first(operands.parameter_gradients));
  addresses.set(Role::kBiasGradient, second(operands.parameter_gradients));
  addresses.set(Role::kSaved, operands.saved);
  addresses.set(Role::kScratch, operands.scratch);
  addresses.set(Role::kStep, operands.step);
  static_cast<CpuStream&>(stream).submit(translate_errors([&] { return backward_->bind(addresses); }), label);
}

}  // namespace arbalest::engine::cpu
