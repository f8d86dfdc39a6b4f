// Activations as steps of a program: for the activation operator, and after a convolution or a dense layer.
#pragma once

#include <dnnl.hpp>

#include "engine/cpu/onednn/primitives.h"
#include "engine/cpu/onednn/program.h"

namespace arbalest::engine::cpu {

class ActivationSteps {
 public:
  // For tensors with the layout of `tensor`. Throws ErrorKind::kDevice if oneDNN has no fast kernel.
  ActivationSteps(const dnnl::engine& engine, OperatorMode mode, const Layout& tensor, const ActivationFunction& f);

  // output = f(input); both may be the same buffer.
  void forward(Program& program, const Operand& input, const Operand& output) const;
  // input_gradient = f'(input) output_gradient. `read`: f's output, or its input if the function differentiates that.
  // The gradients may be the same buffer.
  void backward(Program& program, const Operand& read, const Operand& output_gradient,
                const Operand& input_gradient) const;

 private:
  struct Choice {
    Activation kernels;
    dnnl::memory::desc layout;  // layout in which the kernels work
  };
  static Choice choose(const dnnl::engine& engine, OperatorMode mode, const Layout& tensor,
                       const ActivationFunction& f);

  const Choice choice_;
  const bool reads_input_;  // in backward
};

}  // namespace arbalest::engine::cpu
