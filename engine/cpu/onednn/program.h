// A program of a prepared operator: a sequence of oneDNN primitives and our own loops, on operands that are named by
// role. Binding the roles to addresses gives a task with fixed arguments; running it looks nothing up.
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

#include "engine/cpu/runtime/task.h"
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
  kMean,  // running statistics, and their targets
  kVariance,
  kMeanGradient,
  kVarianceGradient,
};
inline constexpr std::size_t kRoles = 16;  // without those of further inputs

// Roles of operators with several inputs: input k and its gradient. For losses and metrics input 1 is also kLabels.
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
  std::vector<void*> addresses_;  // without the const of read-only operands
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

  // Reserves a buffer in scratch.
  Operand scratch(const dnnl::memory::desc& descriptor);
  // Returns `source` in the wanted layout: itself if it has that layout, else a copy in scratch that a reorder fills at
  // this point.
  Operand read_as(const Operand& source, const dnnl::memory::desc& wanted);
  // Returns where to write a result that `target` will hold: `target` itself if it has the layout `produced`, else
  // scratch, from which deliver() copies.
  Operand write_as(const Operand& target, const dnnl::memory::desc& produced);
  void deliver(const Operand& produced, const Operand& target);

  // The primitive must have been described with a user-managed scratchpad (cpu/primitives.h).
  void add(const dnnl::primitive_desc_base& description, Arguments arguments);
  void add(Function function) { steps_.emplace_back(std::move(function)); }
  // Copies from one layout to another of the same shape.
  void reorder(const Operand& from, const Operand& to);

  std::size_t scratch_bytes() const { return buffer_bytes_ + scratchpad_bytes_; }
  // Allocates, so call it only for recordings and set-up.
  std::unique_ptr<Task> bind(const Addresses& addresses) const;

 private:
  struct PrimitiveStep {
    dnnl::primitive primitive;
    Arguments arguments;
    dnnl::memory::desc scratchpad;
  };

  dnnl::engine engine_;
  std::vector<std::variant<PrimitiveStep, Function>> steps_;
  std::size_t buffer_bytes_ = 0;      // scratch holds the buffers first,
  std::size_t scratchpad_bytes_ = 0;  // then one scratchpad that all primitives share
};

// An operator made of a forward program and, in training, a backward program.
class ProgramOperator final : public Operator {
 public:
  // Sets traits.scratch_bytes.
  ProgramOperator(OperatorTraits traits, Program forward, std::optional<Program> backward);

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override;
  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override;

 private:
  Program forward_;
  std::optional<Program> backward_;
};

}  // namespace arbalest::engine::cpu
