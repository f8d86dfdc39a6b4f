#include "dataflow/layers/activation.h"

namespace arbalest::dataflow {

std::string_view ActivationLayer::kind() const {
  switch (kind_) {
    case engine::ActivationKind::kRelu:
      return "relu";
    case engine::ActivationKind::kTanh:
      return "tanh";
    case engine::ActivationKind::kSigmoid:
      return "sigmoid";
  }
  return "";
}

engine::OperatorSpec ActivationLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::ActivationSpec{inputs[0], kind_};
}

}  // namespace arbalest::dataflow
