// Batch norm as an operator: what its two implementations share, and the one for channels in blocks.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/cpu/blocked_norm.h"
#include "engine/cpu/program.h"
#include "engine/operator.h"

namespace arbalest::engine::cpu {

// All but `saved_bytes`. `output`: how that lies.
OperatorTraits batch_norm_traits(const BatchNormSpec& spec, const Layout& output, bool training);

// Where a step of a program writes the addend's gradient, lying as `output`: where it is wanted, if it is to lie so
// there, else in scratch, since the input's gradient is made from it.
struct AddendGradient {
  AddendGradient(const BatchNormSpec& spec, const PrepareOptions& options, const dnnl::memory::desc& output,
                 Program& program);
  // Behind that step.
  void deliver(Program& program) const;

  Operand target;
  Operand place;
  bool is_wanted;
};

std::unique_ptr<Operator> make_blocked_batch_norm(const BatchNormSpec& spec, const BlockedImages& images,
                                                  const PrepareOptions& options, const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
