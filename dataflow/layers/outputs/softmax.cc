#include "dataflow/layers/outputs/softmax.h"

#include "engine/base/error.h"

namespace arbalest::dataflow {

engine::Shape SoftmaxLayer::output_shape(std::span<const engine::Shape> inputs) const {
  if (inputs[0].rank() != 2) {
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "needs a vector of features per example, not {}; put dense or flatten before it",
                 to_string(inputs[0].with_batch(1)));
  }
  return inputs[0];
}

// Difference, exp, sum and division per logit.
std::int64_t SoftmaxLayer::forward_flops(std::span<const engine::Shape> inputs) const {
  return 4 * inputs[0].elements();
}

engine::OperatorSpec SoftmaxLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::SoftmaxSpec{inputs[0]};
}

}  // namespace arbalest::dataflow
