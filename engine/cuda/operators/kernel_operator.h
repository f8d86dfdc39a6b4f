// Makes an Operator from two functions, one per pass, that enqueue CUDA work. The operator has one input tensor,
// optional labels, and no parameters.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <utility>

#include "engine/cuda/runtime/stream.h"
#include "engine/operator.h"

namespace arbalest::engine::cuda {

// The members of ForwardOperands and BackwardOperands (engine/operator.h) that a KernelOperator needs, copied when a
// pass is enqueued.
struct ForwardAddresses {
  const void* input = nullptr;
  const void* labels = nullptr;  // input 1; null if there is only one input
  void* output = nullptr;
  void* saved = nullptr;
  void* scratch = nullptr;
  const StepParameters* step = nullptr;
  void* input_gradient = nullptr;  // if forward_writes_gradient
};

struct BackwardAddresses {
  const void* input = nullptr;  // valid if backward_reads_inputs
  const void* labels = nullptr;
  const void* output = nullptr;           // valid if backward_reads_output
  const void* output_gradient = nullptr;  // null for a loss
  void* input_gradient = nullptr;
  const void* saved = nullptr;
  void* scratch = nullptr;
  const StepParameters* step = nullptr;
};

class KernelOperator final : public Operator {
 public:
  // Each function enqueues one pass on context.stream.
  using Forward = std::function<void(const ForwardAddresses& addresses, const StreamContext& context)>;
  using Backward = std::function<void(const BackwardAddresses& addresses, const StreamContext& context)>;

  // Pass an empty `backward` if no input gradient is needed; backward() then does nothing.
  KernelOperator(OperatorTraits traits, Forward forward, Backward backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {
    traits_ = std::move(traits);
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const ForwardAddresses addresses{operands.inputs[0],     labels_of(operands.inputs), operands.output,
                                     operands.saved,         operands.scratch,           operands.step,
                                     operands.input_gradient};
    as_cuda(stream).submit(label, [this, addresses](const StreamContext& context) { forward_(addresses, context); });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    if (!backward_) return;
    const BackwardAddresses addresses{.input = operands.inputs[0],
                                      .labels = labels_of(operands.inputs),
                                      .output = operands.output,
                                      .output_gradient = operands.output_gradient,
                                      .input_gradient = operands.input_gradients[0],
                                      .saved = operands.saved,
                                      .scratch = operands.scratch,
                                      .step = operands.step};
    as_cuda(stream).submit(label, [this, addresses](const StreamContext& context) { backward_(addresses, context); });
  }

 private:
  static const void* labels_of(std::span<const void* const> inputs) { return inputs.size() < 2 ? nullptr : inputs[1]; }

  const Forward forward_;
  const Backward backward_;
};

}  // namespace arbalest::engine::cuda
