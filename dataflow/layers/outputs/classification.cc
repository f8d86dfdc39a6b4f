#include "dataflow/layers/outputs/classification.h"

#include "engine/error.h"

namespace arbalest::dataflow {

using engine::Shape;

namespace {

void check_inputs(std::span<const Shape> inputs) {
  const Shape& logits = inputs[0];
  if (logits.rank() != 2) {
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "needs one logit per class as its first input, not {} per example; put a dense layer before it",
                 to_string(logits.with_batch(1)));
  }
  if (inputs[1].rank() != 1) {
    engine::fail(engine::ErrorKind::kInvalidJob, "needs \"label\" as its second input");
  }
}

}  // namespace

Shape SoftmaxCrossEntropyLayer::output_shape(std::span<const Shape> inputs) const {
  check_inputs(inputs);
  return {1};
}

// exp, sum, division and difference per logit.
std::int64_t SoftmaxCrossEntropyLayer::forward_flops(std::span<const Shape> inputs) const {
  return 4 * inputs[0].elements();
}

engine::OperatorSpec SoftmaxCrossEntropyLayer::operator_spec(std::span<const engine::Layout> inputs,
                                                             std::uint32_t) const {
  return engine::SoftmaxCrossEntropySpec{inputs[0], inputs[1], options_.weight, options_.label_smoothing};
}

Shape AccuracyLayer::output_shape(std::span<const Shape> inputs) const {
  check_inputs(inputs);
  return {2};
}

std::int64_t AccuracyLayer::forward_flops(std::span<const Shape> inputs) const { return inputs[0].elements(); }

engine::OperatorSpec AccuracyLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::AccuracySpec{inputs[0], inputs[1]};
}

}  // namespace arbalest::dataflow
