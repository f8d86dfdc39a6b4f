// A convolution method for tensors with interleaved examples (lanes.h), as steps of an operator's programs.
#pragma once

#include <memory>

#include "engine/cpu/onednn/program.h"
#include "engine/operator.h"

namespace arbalest::engine::cpu {

// All tensors are in lanes and have elements of one type.
class LaneSteps {
 public:
  virtual ~LaneSteps() = default;

  // weights: [c, h, w, filters], in this order in memory; the bias is read from its role.
  virtual void forward(Program& program, const Operand& input, const Operand& weights, bool has_bias, bool relu,
                       const Operand& output) const = 0;
  // weights: [filters, h, w, c].
  virtual void input_gradient(Program& program, const Operand& output_gradient, const Operand& weights,
                              const Operand& gradient) const = 0;
  // gradient: [c, h, w, filters], float32; the bias's gradient goes to its role.
  virtual void weights_gradient(Program& program, const Operand& input, const Operand& output_gradient, bool has_bias,
                                const Operand& gradient) const = 0;
};

// Convolves tap by tap, in float32 or bfloat16.
std::unique_ptr<LaneSteps> direct_lane_steps(const Conv2dSpec& spec, DType type);
// Convolves by Winograd's minimal filtering, where that is faster.
bool prefers_winograd(const Conv2dSpec& spec, DType type);
std::unique_ptr<LaneSteps> winograd_lane_steps(const Conv2dSpec& spec);

}  // namespace arbalest::engine::cpu
