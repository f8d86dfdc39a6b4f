#include "scheduler/moving_average.h"

#include <cmath>

namespace arbalest::scheduler {

float MovingAverage::take(double progress) {
  if (epochs_ <= 0.0 || progress <= 0.0) return 1.0F;
  const double weight = std::expm1(-(progress - last_) / epochs_) / std::expm1(-progress / epochs_);
  last_ = progress;
  return static_cast<float>(weight);
}

}  // namespace arbalest::scheduler
