#include "dataflow/layers/branch_layers.h"

namespace arbalest::dataflow {

using engine::ErrorKind;
using engine::Shape;

std::shared_ptr<const Layer> AddLayer::with_activation(const engine::ActivationFunction& f) const {
  if (activation_.has_value() || f.kind != engine::ActivationKind::kRelu) return nullptr;
  return std::make_shared<AddLayer>(f.kind);
}

Shape AddLayer::output_shape(std::span<const Shape> inputs) const {
  if (inputs[0] != inputs[1]) {
    engine::fail(
        ErrorKind::kInvalidJob,
        "adds tensors of one shape, not {} and {} per example; bring them to one shape first, for example with "
        "a conv of kernel 1 or padded_shortcut",
        to_string(inputs[0].with_batch(1)), to_string(inputs[1].with_batch(1)));
  }
  return inputs[0];
}

std::int64_t AddLayer::forward_flops(std::span<const Shape> inputs) const {
  return inputs[0].elements() * (activation_.has_value() ? 2 : 1);
}

engine::OperatorSpec AddLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::AddSpec{inputs[0], inputs[1], activation_};
}

Shape ConcatLayer::output_shape(std::span<const Shape> inputs) const {
  Shape joined;
  for (int axis = 0; axis < inputs[0].rank(); ++axis) {
    std::int64_t extent = axis == 1 ? 0 : inputs[0][axis];
    for (const Shape& input : inputs) {
      if (input.rank() != inputs[0].rank() || (axis != 1 && input[axis] != extent)) {
        engine::fail(ErrorKind::kInvalidJob,
                     "joins tensors that differ in their channels only, not {} and {} per example; make their heights "
                     "and widths equal, for example by padding",
                     to_string(inputs[0].with_batch(1)), to_string(input.with_batch(1)));
      }
      if (axis == 1) extent += input[axis];
    }
    joined.append(extent);
  }
  return joined;
}

engine::OperatorSpec ConcatLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::ConcatSpec{{inputs.begin(), inputs.end()}};
}

}  // namespace arbalest::dataflow
