#include "dataflow/layers/activation.h"

namespace arbalest::dataflow {

std::string_view ActivationLayer::kind() const {
  switch (function_.kind) {
    case engine::ActivationKind::kRelu: return "relu";
    case engine::ActivationKind::kTanh: return "tanh";
    case engine::ActivationKind::kSigmoid: return "sigmoid";
    case engine::ActivationKind::kLeakyRelu: return "leaky_relu";
    case engine::ActivationKind::kGelu: return "gelu";
    case engine::ActivationKind::kSilu: return "silu";
    case engine::ActivationKind::kRelu6: return "relu6";
    case engine::ActivationKind::kHardSwish: return "hard_swish";
  }
  return "";
}

engine::OperatorSpec ActivationLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::ActivationSpec{inputs[0], function_};
}

}  // namespace arbalest::dataflow
