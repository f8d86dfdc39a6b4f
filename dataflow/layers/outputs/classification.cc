#include "dataflow/layers/outputs/classification.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"

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
  if (inputs[0][1] < 2) {
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "needs the logits of two classes or more, not one: the probability of a single class is always 1; for "
                 "yes and no take two classes, and a layer before it with units: 2");
  }
  return {1 + static_cast<std::int64_t>(top_.size())};
}

Metrics SoftmaxCrossEntropyLayer::metrics(std::span<const Shape> /*inputs*/) const {
  return {{.name = "loss", .title = "loss"}};
}

// exp, sum, division and difference per logit, and a comparison where ranks are counted.
std::int64_t SoftmaxCrossEntropyLayer::forward_flops(std::span<const Shape> inputs) const {
  return (top_.empty() ? 4 : 5) * inputs[0].elements();
}

engine::OperatorSpec SoftmaxCrossEntropyLayer::operator_spec(std::span<const engine::Layout> inputs,
                                                             std::uint32_t) const {
  return engine::SoftmaxCrossEntropySpec{inputs[0], inputs[1], options_.weight, options_.label_smoothing, top_};
}

std::shared_ptr<const Layer> SoftmaxCrossEntropyLayer::with_counted_ranks(const std::vector<std::int32_t>& top) const {
  if (!top_.empty()) return nullptr;
  auto both = std::make_shared<SoftmaxCrossEntropyLayer>(*this);
  both->top_ = top;
  return both;
}

Shape AccuracyLayer::output_shape(std::span<const Shape> inputs) const {
  check_inputs(inputs);
  for (const std::int32_t k : top_k_) {
    if (!is_chosen_ || k < inputs[0][1]) continue;
    throw LayerError("top_k", fmt::format("top_k must be below the number of classes, {}, not {}; otherwise every "
                                          "label is among them",
                                          inputs[0][1], k));
  }
  return {1 + static_cast<std::int64_t>(top_k_.size())};
}

Metrics AccuracyLayer::metrics(std::span<const Shape> inputs) const {
  constexpr std::int64_t kManyClasses = 100;
  const std::int64_t classes = inputs[0][1];
  Metrics metrics = {{.name = "accuracy", .title = "accuracy", .unit = MetricUnit::kFraction, .is_score = true}};
  for (const std::int32_t k : top_k_) {
    metrics.push_back({.name = fmt::format("top{}_accuracy", k),
                       .title = fmt::format("top-{} accuracy", k),
                       .unit = MetricUnit::kFraction,
                       .sum = static_cast<int>(metrics.size()),
                       .is_brief = is_chosen_ || classes >= kManyClasses,
                       .is_trivial = k >= classes});
  }
  return metrics;
}

std::int64_t AccuracyLayer::forward_flops(std::span<const Shape> inputs) const { return inputs[0].elements(); }

std::vector<std::int32_t> AccuracyLayer::counted_ranks() const {
  std::vector<std::int32_t> top = {1};
  top.insert(top.end(), top_k_.begin(), top_k_.end());
  return top;
}

engine::OperatorSpec AccuracyLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::AccuracySpec{inputs[0], inputs[1], counted_ranks()};
}

}  // namespace arbalest::dataflow
