#include "scheduler/evaluation/moving_average.h"

#include <algorithm>
#include <cmath>

namespace arbalest::scheduler {

bool MovingAverage::is_due(double progress) const {
  if (options_.mean_from_epoch) return progress >= *options_.mean_from_epoch && progress - last_ >= 1.0 / kSamples;
  return options_.epochs > 0.0 && progress - last_ >= options_.epochs / kSamples;
}

float MovingAverage::take(double progress) {
  if (options_.mean_from_epoch) {
    const double from = *options_.mean_from_epoch;
    const double since = progress - std::max(last_, from);
    last_ = progress;
    return progress <= from ? 1.0F : static_cast<float>(since / (progress - from));
  }
  if (options_.epochs <= 0.0 || progress <= 0.0) return 1.0F;
  const double weight = std::expm1(-(progress - last_) / options_.epochs) / std::expm1(-progress / options_.epochs);
  last_ = progress;
  return static_cast<float>(weight);
}

}  // namespace arbalest::scheduler
