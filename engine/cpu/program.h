// What a prepared operator does: oneDNN primitives and loops of ours in sequence, on operands that are named by role.
// Binding the roles to addresses gives a task with all arguments fixed; running it looks nothing up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include <dnnl.hpp>

#include "engine/cpu/task.h"
#include "engine/operator.h"

namespace arbalest::engine::cpu {

enum class Role : std::size_t {
  kInput,
  kLabels,
  kOutput,
  kWeights,
  kBias,
  kSaved,
  kScratch,
  kOutputGradient,
  kInputGradient,
  kWeightsGradient,
  kBiasGradient,
  kStep,
  kMean,  // running statistics, and what they are to move to
  kVariance,
  kMeanGradient,
  kVarianceGradient,
};
inline constexpr std::size_t kRoles = 16;  // and those of further inputs

// Of operators with several inputs: the k-th, and its gradient. For losses and metrics input 1 is kLabels too.
inline Role input_role(std::size_t k) { return k == 0 ? Role::kInput : static_cast<Role>(kRoles + 2 * k - 2); }
inline Role input_gradient_role(std::size_t k) {
  return k == 0 ? Role::kInputGradient : static_cast<Role>(kRoles + 2 * k - 1);
}

class Addresses {
 public:
  explicit Addresses(std::size_t inputs) : addresses_(kRoles + 2 * std::max(inputs, std::size_t{1}) - 2) {}
  void set(Role role, const void* address) { addresses_[static_cast<std::size_t>(role)] = const_cast<void*>(address); }
  void* operator[](Role role) const { return addresses_[static_cast<std::size_t>(role)]; }

 private:
  std::vector<void*> addresses_;  // what an operator only reads lies here without its const
};

struct Operand {
  Role role = Role::kScratch;
  dnnl::memory::desc descriptor;
  std::size_t offset = 0;  // bytes from the role's address

  template <typename T>
  T* at(const Addresses& addresses) const {
    return reinterpret_cast<T*>(static_cast<std::byte*>(addresses[role]) + offset);
  }
};

class Program {
 public:
  using Function = std::function<void(const TaskContext&, const Addresses&)>;
  using Arguments = std::vector<std::pair<int, Operand>>;

  explicit Program(const dnnl::engine& engine) : engine_(engine) {}

  // A buffer of its own in scratch.
  Operand scratch(const dnnl::memory::desc& descriptor);
  // `source` in the wanted layout: itself where it lies so, else a scratch copy that a reorder fills at this point.
  Operand read_as(const Operand& source, const dnnl::memory::desc& wanted);
  // Where to write what shall end in `target`: target itself where it lies so, else scratch; `deliver` completes it.
  Operand write_as(const Operand& target, const dnnl::memory::desc& produced);
  void deliver(const Operand& produced, const Operand& target);

  // The primitive must have been described with user-managed scratchpad (cpu/primitives.h).
  void add(const dnnl::primitive_desc_base& description, Arguments arguments);
  void add(Function function) { steps_.emplace_back(std::move(function)); }
  // Copies from one layout to another of the same shape.
  void reorder(const Operand& from, const Operand& to);

  std::size_t scratch_bytes() const { return buffer_bytes_ + scratchpad_bytes_; }
  // Allocates: for recordings and set-up.
  std::unique_ptr<Task> bind(const Addresses& addresses) const;

 private:
  struct PrimitiveStep {
    dnnl::primitive primitive;
    Arguments arguments;
    dnnl::memory::desc scratchpad;
  };

  dnnl::engine engine_;
  std::vector<std::variant<PrimitiveStep, Function>> steps_;
  std::size_t buffer_bytes_ = 0;      // scratch: first the buffers,
  std::size_t scratchpad_bytes_ = 0;  // then one scratchpad that the primitives share
};

// An operator made of a forward program and, in training, a backward program.
class ProgramOperator final : public Operator {
 public:
  // Fills in traits.scratch_bytes.
  ProgramOperator(OperatorTraits traits, Program forward, std::optional<Program> backward);

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override;
  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override;

 private:
  Program forward_;
  std::optional<Program> backward_;
};

}  // namespace arbalest::engine::cpu
