#include "scheduler/learning_rate.h"

#include <cmath>

namespace arbalest::scheduler {

int LearningRateSchedule::drops_before(double progress) const {
  int count = 0;
  while (count < static_cast<int>(drops.size()) && drops[static_cast<std::size_t>(count)].epoch <= progress) ++count;
  return count;
}

float LearningRateSchedule::at(double progress, int learners) const {
  double rate = base;
  for (int i = 0; i < drops_before(progress); ++i) rate *= drops[static_cast<std::size_t>(i)].factor;
  switch (with_learners) {
    case LearnerScaling::kKeep:
      break;
    case LearnerScaling::kSqrt:
      rate *= std::sqrt(static_cast<double>(learners));
      break;
    case LearnerScaling::kLinear:
      rate *= learners;
      break;
  }
  return static_cast<float>(rate);
}

}  // namespace arbalest::scheduler
