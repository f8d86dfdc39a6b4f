// The common base of convolutions and dense layers: weights, an optional bias, and three passes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/operator.h"

namespace arbalest::engine::cuda {

// Addresses for one call; null if absent (no bias) or not wanted (a gradient).
struct LinearForward {
  const void* input = nullptr;
  const void* weights = nullptr;
  const float* bias = nullptr;
  void* output = nullptr;
  void* saved = nullptr;
  std::byte* scratch = nullptr;
};

struct LinearBackward {
  const void* read = nullptr;  // the input, or the copy that forward saved if the kernels need another layout
  const void* weights = nullptr;
  const void* output = nullptr;     // valid if there is an activation
  void* output_gradient = nullptr;  // libraries: backward turns it into the gradient of the activation's input
  float* weights_gradient = nullptr;
  float* bias_gradient = nullptr;
  void* input_gradient = nullptr;
  const void* addend = nullptr;  // BackwardOperands::addend
  std::byte* scratch = nullptr;
};

class LinearOperator : public Operator {
 public:
  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const final {
    const LinearForward addresses{.input = operands.inputs[0],
                                  .weights = operands.parameters[0],
                                  .bias = bias_ ? static_cast<const float*>(operands.parameters[1]) : nullptr,
                                  .output = operands.output,
                                  .saved = operands.saved,
                                  .scratch = static_cast<std::byte*>(operands.scratch)};
    submit(stream, label, [this, addresses](const StreamContext& context) { run_forward(addresses, context); });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const final {
    ARBALEST_CHECK(training_);
    const LinearBackward addresses{
        .read = traits_.backward_reads_inputs ? operands.inputs[0] : operands.saved,
        .weights = operands.parameters[0],
        .output = operands.output,
        .output_gradient = operands.output_gradient,
        .weights_gradient = static_cast<float*>(operands.parameter_gradients[0]),
        .bias_gradient = bias_ ? static_cast<float*>(operands.parameter_gradients[1]) : nullptr,
        .input_gradient = input_gradient_ ? operands.input_gradients[0] : nullptr,
        .addend = operands.addend,
        .scratch = static_cast<std::byte*>(operands.scratch)};
    submit(stream, label, [this, addresses](const StreamContext& context) { run_backward(addresses, context); });
  }

 protected:
  // Whose kernels compute the products.
  enum class Kernels { kLibraries, kOwn };

  LinearOperator(const PrepareOptions& options, bool bias, std::optional<ActivationFunction> activation,
                 Kernels kernels)
      : type_(options.precision == Precision::kBFloat16 ? DType::kBFloat16 : DType::kFloat32),
        training_(options.mode == OperatorMode::kTraining),
        input_gradient_(training_ && options.input_gradient),
        bias_(bias),
        activation_(activation),
        kernels_(kernels) {
    traits_.backward_reads_output = training_ && activation.has_value();
    traits_.overwrites_output_gradient = traits_.backward_reads_output && kernels == Kernels::kLibraries;
    traits_.runs_replicas_in_turn = kernels == Kernels::kLibraries;
    traits_.low_precision_weights = type_ == DType::kBFloat16;
  }

  // Sets the layouts that the options fix. Otherwise sets `weights`, and a bias of `outputs` elements if there is one.
  void set_parameters(const PrepareOptions& options, const Layout& weights, std::int64_t outputs) {
    traits_.parameters = options.parameters;
    if (traits_.parameters.empty()) {
      traits_.parameters.push_back(weights);
      if (bias_) traits_.parameters.push_back(make_layout({outputs}, DType::kFloat32, Order::kCanonical));
    }
    ARBALEST_CHECK(traits_.parameters.size() == (bias_ ? 2U : 1U));
    ARBALEST_CHECK(traits_.parameters[0].shape().elements() == weights.shape().elements());
  }

  const DType type_;  // type of the output, its gradient, and the factors of products
  const bool training_;
  const bool input_gradient_;
  const bool bias_;
  const std::optional<ActivationFunction> activation_;

 private:
  template <typename Function>
  void submit(Stream& stream, const char* label, Function function) const {
    if (kernels_ == Kernels::kLibraries) {
      as_cuda(stream).submit_to_libraries(label, std::move(function));
    } else {
      as_cuda(stream).submit(label, std::move(function));
    }
  }

  // Each enqueues one pass.
  virtual void run_forward(const LinearForward& of, const StreamContext& context) const = 0;
  virtual void run_backward(const LinearBackward& of, const StreamContext& context) const = 0;

  const Kernels kernels_;
};

}  // namespace arbalest::engine::cuda
