// The interface of a kind of layer: shapes, parameters, cost, and the operator that runs it. A new kind is a class in
// layers/, an operator in engine/ and a message in proto/ (docs/adding.md: "Adding an operator").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataflow/layers/initializer.h"
#include "dataflow/layers/metrics.h"
#include "engine/base/error.h"
#include "engine/base/shape.h"
#include "engine/operator.h"

namespace arbalest::dataflow {

// The part of a whole parameter that one device of a split model has: [first, first + n) of an axis, where n is the
// part's extent. Initial values are those of the whole parameter.
struct ParameterPart {
  engine::Shape whole;
  int axis = 0;  // 0 or 1
  std::int64_t first = 0;
};

// Kinds of parameters, for job options that apply to one kind in all layers.
enum class ParameterKind {
  kWeight,
  kBias,
  kNormalization,  // scale and shift of a normalization
  kStatistic,      // running mean and variance: not trained, but kept with the weights (engine/ops/batch_norm.h)
};

struct ParameterSpec {
  std::string name;     // PyTorch's name: "weight", "bias", "running_mean"
  engine::Shape shape;  // canonical
  Initializer initializer;
  Fan fan;
  float learning_rate_multiplier = 1.0F;
  float decay_multiplier = 1.0F;
  ParameterKind kind = ParameterKind::kWeight;
  float statistic_momentum = 0.0F;         // in (0, 1] for statistics; else 0
  bool is_frozen = false;                  // training does not change it (dataflow/parameter_rules.h)
  std::optional<ParameterPart> part = {};  // set: `shape` is that of a part, and other devices have the others

  bool is_trained() const noexcept { return !is_frozen && kind != ParameterKind::kStatistic; }
  bool is_statistic() const noexcept { return kind == ParameterKind::kStatistic; }
  const engine::Shape& whole_shape() const noexcept { return part ? part->whole : shape; }
};

enum class LayerRole {
  kHidden,  // the output feeds other layers
  kLoss,    // writes StepResult::sums[kLossSum]; backward starts here
  kMetric,  // writes the sums behind the loss; has no gradient
};

// A field of the layer does not fit the layer's input.
class LayerError : public engine::Error {
 public:
  // `field`: the field's name in a job file, such as "kernel".
  LayerError(std::string field, const std::string& what)
      : Error(engine::ErrorKind::kInvalidJob, what), field_(std::move(field)) {}

  const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // The layer's name in a job file: "conv".
  virtual std::string_view kind() const = 0;
  virtual LayerRole role() const { return LayerRole::kHidden; }
  virtual int input_count() const { return 1; }
  // Whether the layer may read more than input_count() inputs.
  virtual bool takes_more_inputs() const { return false; }
  // Name in a job file of the field with the number of outputs (units, channels); "" if the layer has no such field.
  virtual std::string width_field() const { return ""; }

  // The column of ids that the layer looks up, and the number of ids for which its table has rows. Only layers that
  // look up ids instead of reading numbers return one.
  struct LookUp {
    std::int64_t column = 0;
    std::int64_t rows = 0;
  };
  virtual std::optional<LookUp> look_up() const { return std::nullopt; }
  // For losses and metrics: type of the labels that they compare with: classes (int32) or numbers (float32).
  virtual engine::DType label_type() const { return engine::DType::kInt32; }
  // Returns the metrics that follow from what a loss or a metric writes, each with a sum of its own or one that it
  // shares. Metric::sum counts from the layer's first sum.
  virtual Metrics metrics(std::span<const engine::Shape> /*inputs*/) const { return {}; }

  // For fusion (dataflow/fusion.h). activation(): the elementwise function, if the layer does nothing else.
  // with_activation(): a layer that does this layer's work and then `f` in one pass; null if there is none.
  virtual std::optional<engine::ActivationFunction> activation() const { return std::nullopt; }
  virtual std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& /*f*/) const {
    return nullptr;
  }

  // activation_of_sum(): the function that the layer applies to the sum of its two inputs, if it does nothing else.
  // with_addend(): a layer that does this layer's work, adds a second input, and then applies `f`; null if there is
  // none.
  virtual std::optional<engine::ActivationKind> activation_of_sum() const { return std::nullopt; }
  virtual std::shared_ptr<const Layer> with_addend(engine::ActivationKind /*f*/) const { return nullptr; }

  // counted_ranks(): the numbers k of engine::AccuracySpec, if the layer does nothing else than such counts.
  // with_counted_ranks(): a loss that does this layer's work and writes these counts behind its own sum; null if there
  // is none.
  virtual std::vector<std::int32_t> counted_ranks() const { return {}; }
  virtual std::shared_ptr<const Layer> with_counted_ranks(const std::vector<std::int32_t>& /*top*/) const {
    return nullptr;
  }

  // For layers with running statistics: the layer that normalizes with them in training, too, and does not change them.
  // Null for other layers.
  virtual std::shared_ptr<const Layer> with_frozen_statistics() const { return nullptr; }

  // Split models need layers that do this layer's work on a block of columns (engine/ops/dropout.h). Null if the layer
  // needs all columns.
  virtual std::shared_ptr<const Layer> on_columns(const engine::ColumnBlock& /*block*/) const { return nullptr; }

  // All shapes here are those of a mini-batch; the first extent is n. Throws engine::Error (kInvalidJob) saying what
  // does not fit, as a LayerError if one of the layer's fields is the cause. The caller adds the layer's name.
  virtual engine::Shape output_shape(std::span<const engine::Shape> inputs) const = 0;
  virtual std::vector<ParameterSpec> parameters(std::span<const engine::Shape> /*inputs*/) const { return {}; }
  // Forward floating-point operations for the whole mini-batch (a multiply-add counts two).
  virtual std::int64_t forward_flops(std::span<const engine::Shape> inputs) const;

  // `key`: key of the operator's random numbers.
  virtual engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const = 0;
};

// Returns the output's shape of a layer that keeps the shape of images [n, c, h, w] or features [n, c]. Throws
// kInvalidJob for another shape.
engine::Shape shape_of_images_or_features(const engine::Shape& input);

}  // namespace arbalest::dataflow
