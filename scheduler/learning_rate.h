// Learning-rate schedules: pure functions of progress (examples seen / examples of one epoch), never of a step count,
// because the number of learners may change.
#pragma once

#include <vector>

namespace arbalest::scheduler {

// How the learning rate of a learner follows the number of learners k: k learners take 1/k as many steps each.
enum class LearnerScaling { kKeep, kSqrt, kLinear };  // times 1, sqrt(k), k

struct LearningRateDrop {
  double epoch = 0.0;   // progress at which it takes effect
  double factor = 1.0;  // times all earlier ones
};

// Fixed, or multistep if there are drops.
struct LearningRateSchedule {
  double base = 0.0;
  std::vector<LearningRateDrop> drops;  // ascending epochs
  LearnerScaling with_learners = LearnerScaling::kSqrt;

  // The rate of one of `learners` learners.
  float at(double progress, int learners) const;
  // How many drops have taken effect; averaging restarts when this changes (design: "Restart").
  int drops_before(double progress) const;
};

}  // namespace arbalest::scheduler
