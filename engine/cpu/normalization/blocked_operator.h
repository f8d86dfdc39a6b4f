// Batch norm as an operator: code shared by its two implementations, and the implementation for channels in blocks.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/cpu/normalization/blocked_batch_norm.h"
#include "engine/cpu/onednn/program.h"
#include "engine/operator.h"

namespace arbalest::engine::cpu {

// All traits except `saved_bytes`. `output`: the output's layout.
OperatorTraits batch_norm_traits(const BatchNormSpec& spec, const Layout& output, bool training);

// The place where a step of a program writes the addend's gradient, which has the layout of `output`. If the wanted
// gradient has this layout, it is that place; else scratch is. The input's gradient is computed from it.
struct AddendGradient {
  AddendGradient(const BatchNormSpec& spec, const PrepareOptions& options, const dnnl::memory::desc& output,
                 Program& program);
  // Call after that step: completes the wanted gradient.
  void deliver(Program& program) const;

  Operand target;
  Operand place;
  bool is_wanted;
};

std::unique_ptr<Operator> make_blocked_batch_norm(const BatchNormSpec& spec, const BlockedImages& images,
                                                  const PrepareOptions& options, const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
