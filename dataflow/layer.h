// What a kind of layer knows about itself: shapes, parameters, cost, and the operator that runs it. Adding one is a
// class in layers/, an operator in engine/, and a message in proto (README: "How to add an operator").
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataflow/initializer.h"
#include "engine/error.h"
#include "engine/operator.h"
#include "engine/shape.h"

namespace arbalest::dataflow {

// What a job may treat alike, whatever the layer.
enum class ParameterKind {
  kWeight,
  kBias,
  kNormalization,  // scale and shift of batch norm
  kStatistic,      // running mean and variance: not trained, but kept with the weights (engine/ops/batch_norm.h)
};

struct ParameterSpec {
  std::string name;     // as PyTorch has it: "weight", "bias", "running_mean"
  engine::Shape shape;  // canonical
  Initializer initializer;
  Fan fan;
  float learning_rate_multiplier = 1.0F;
  float decay_multiplier = 1.0F;
  ParameterKind kind = ParameterKind::kWeight;
  float statistic_momentum = 0.0F;  // of statistics, in (0, 1]

  bool is_statistic() const noexcept { return kind == ParameterKind::kStatistic; }
};

enum class LayerRole {
  kHidden,  // its output feeds other layers
  kLoss,    // StepResult::loss_sum; where backward starts
  kMetric,  // StepResult::correct and correct_top5; no gradient
};

// A value of the layer does not fit its input.
class LayerError : public engine::Error {
 public:
  // `field`: what the value is called in a job file, "kernel".
  LayerError(std::string field, const std::string& what)
      : Error(engine::ErrorKind::kInvalidJob, what), field_(std::move(field)) {}

  const std::string& field() const noexcept { return field_; }

 private:
  std::string field_;
};

class Layer {
 public:
  virtual ~Layer() = default;

  // As in a job file: "conv".
  virtual std::string_view kind() const = 0;
  virtual LayerRole role() const { return LayerRole::kHidden; }
  virtual int input_count() const { return 1; }
  // It may read more than input_count().
  virtual bool takes_more_inputs() const { return false; }
  // What the number of its outputs (units, channels) is called in a job file; "" where the layer has no such value.
  virtual std::string width_field() const { return ""; }

  // Of a layer that looks up ids instead of reading numbers: those of which column, and how many it knows.
  struct LookUp {
    std::int64_t column = 0;
    std::int64_t rows = 0;
  };
  virtual std::optional<LookUp> look_up() const { return std::nullopt; }
  // Of losses and metrics, what they compare with: classes (int32) or numbers (float32).
  virtual engine::DType label_type() const { return engine::DType::kInt32; }

  // What fusion (dataflow/fusion.h) asks: the elementwise function that is all a layer does, and a layer that does this
  // one's work and then such a function in the same pass, or null where there is none.
  virtual std::optional<engine::ActivationFunction> activation() const { return std::nullopt; }
  virtual std::shared_ptr<const Layer> with_activation(const engine::ActivationFunction& /*f*/) const {
    return nullptr;
  }

  // The same of sums: what a layer does to the sum of its two inputs, if that is all it does, and a layer that does
  // this one's work, adds a second input, and then does that.
  virtual std::optional<engine::ActivationKind> activation_of_sum() const { return std::nullopt; }
  virtual std::shared_ptr<const Layer> with_addend(engine::ActivationKind /*f*/) const { return nullptr; }

  // All shapes here are those of a mini-batch, first extent n. Throws engine::Error (kInvalidJob), a LayerError where
  // a value of the layer is to blame, saying what does not fit; the caller adds the layer's name.
  virtual engine::Shape output_shape(std::span<const engine::Shape> inputs) const = 0;
  virtual std::vector<ParameterSpec> parameters(std::span<const engine::Shape> /*inputs*/) const { return {}; }
  // Forward floating-point operations for the whole mini-batch (a multiply-add counts two).
  virtual std::int64_t forward_flops(std::span<const engine::Shape> inputs) const;

  // `key`: of its randomness.
  virtual engine::OperatorSpec operator_spec(std::span<const engine::Layout> inputs, std::uint32_t key) const = 0;
};

}  // namespace arbalest::dataflow
