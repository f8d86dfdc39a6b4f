// Options of one parameter of a layer that a job file can set.
#pragma once

#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

struct ParameterOptions {
  Initializer initializer;
  float learning_rate_multiplier = 1.0F;
  float decay_multiplier = 1.0F;
};

inline constexpr Initializer kDefaultWeight{.kind = Initializer::Kind::kHe};
inline constexpr Initializer kDefaultBias{.kind = Initializer::Kind::kConstant};

inline ParameterSpec parameter_spec(const char* name, const engine::Shape& shape, const Fan& fan,
                                    const ParameterOptions& options) {
  return {.name = name,
          .shape = shape,
          .initializer = options.initializer,
          .fan = fan,
          .learning_rate_multiplier = options.learning_rate_multiplier,
          .decay_multiplier = options.decay_multiplier};
}

// Not for the shift of a normalization, which is also named "bias": its kind is kNormalization.
inline ParameterSpec bias_spec(const engine::Shape& shape, const Fan& fan, const ParameterOptions& options) {
  ParameterSpec spec = parameter_spec("bias", shape, fan, options);
  spec.kind = ParameterKind::kBias;
  return spec;
}

// A running statistic, which is not trained. `momentum` is the weight of the newest mini-batch, as in PyTorch.
inline ParameterSpec statistic_spec(const char* name, const engine::Shape& shape, float initial, float momentum) {
  return {.name = name,
          .shape = shape,
          .initializer = {.kind = Initializer::Kind::kConstant, .value = initial},
          .fan = {},
          .kind = ParameterKind::kStatistic,
          .statistic_momentum = momentum};
}

}  // namespace arbalest::dataflow
