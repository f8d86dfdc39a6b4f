// Activations as steps of a program: of the activation operator, and behind a convolution or a dense layer.
#pragma once

#include <dnnl.hpp>

#include "engine/cpu/primitives.h"
#include "engine/cpu/program.h"

namespace arbalest::engine::cpu {

class ActivationSteps {
 public:
  // For tensors that lie as `tensor`. Throws ErrorKind::kDevice where oneDNN has no fast kernel.
  ActivationSteps(const dnnl::engine& engine, OperatorMode mode, const Layout& tensor, const ActivationFunction& f);

  // output = f(input); they may be one.
  void forward(Program& program, const Operand& input, const Operand& output) const;
  // input_gradient = f'(input) output_gradient, with f' from f's output, or its input where it differentiates that:
  // `read`. The gradients may be one.
  void backward(Program& program, const Operand& read, const Operand& output_gradient,
                const Operand& input_gradient) const;

 private:
  struct Choice {
    Activation kernels;
    dnnl::memory::desc layout;  // that they work in
  };
  static Choice choose(const dnnl::engine& engine, OperatorMode mode, const Layout& tensor,
                       const ActivationFunction& f);

  const Choice choice_;
  const bool reads_input_;  // in backward
};

}  // namespace arbalest::engine::cpu
