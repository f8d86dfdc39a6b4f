#include "dataflow/layers/outputs/squared_error.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape SquaredErrorLayer::output_shape(std::span<const Shape> inputs) const {
  if (inputs[0].rank() != 2 || inputs[0][1] != 1) {
    engine::fail(
        engine::ErrorKind::kInvalidJob,
        "needs one prediction per example as its first input, not {}; put inner_product {{}} or dense {{ units: "
        "1 }} before it",
        to_string(inputs[0].with_batch(1)));
  }
  if (inputs[1].rank() != 1) {
    engine::fail(engine::ErrorKind::kInvalidJob, "needs \"label\" as its second input");
  }
  return {1};
}

// In evaluation the loss is the mean squared error, so its root needs no sum of its own. Training multiplies it.
Metrics SquaredErrorLayer::metrics(std::span<const Shape> /*inputs*/) const {
  return {{.name = "loss", .title = "loss"},
          {.name = "rmse",
           .title = "RMSE",
           .form = MetricForm::kRootOfMean,
           .is_score = true,
           .in_training = weight_ == 1.0F}};
}

// Difference, square and sum.
std::int64_t SquaredErrorLayer::forward_flops(std::span<const Shape> inputs) const { return 3 * inputs[0].elements(); }

engine::OperatorSpec SquaredErrorLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::SquaredErrorSpec{inputs[0], inputs[1], weight_};
}

}  // namespace arbalest::dataflow
