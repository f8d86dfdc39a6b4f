#include "sma/options.h"

#include "engine/error.h"

namespace arbalest::sma {

using engine::ErrorKind;
using engine::fail;

void check(const Options& options, int learners) {
  const float alpha = options.alpha_for(learners);
  const float mu = options.central_momentum;
  if (!(alpha > 0.0F && alpha <= 1.0F)) fail(ErrorKind::kInvalidJob, "alpha must be in (0, 1], not {}", alpha);
  if (!(mu >= 0.0F && mu < 1.0F)) fail(ErrorKind::kInvalidJob, "central_momentum must be in [0, 1), not {}", mu);
  if (options.period < 1) fail(ErrorKind::kInvalidJob, "period must be at least 1, not {}", options.period);
  if (learners == 1) return;  // plain SGD: nothing is averaged
  const float pull = static_cast<float>(learners) * alpha;
  const float bound = (1.0F + mu) * (2.0F - alpha);
  if (pull >= bound) {
    fail(ErrorKind::kInvalidJob,
         "{} learners with alpha {} and central_momentum {} are unstable: learners x alpha = {:.3g} must stay below (1 "
         "+ "
         "central_momentum)(2 - alpha) = {:.3g}; leave alpha unset (it is then 1/learners)",
         learners, alpha, mu, pull, bound);
  }
}

std::string warning(const Options& options, float local_momentum, int learners) {
  constexpr float kHigh = 0.8F;
  constexpr int kEnoughLearners = 16;
  if (learners == 1 || learners >= kEnoughLearners || local_momentum < kHigh || options.central_momentum < kHigh) {
    return "";
  }
  return fmt::format(
      "momentum {} and central_momentum {} are both at least {} with {} learners: the largest stable learning rate "
      "shrinks "
      "several-fold; lower one of them if the loss rises",
      local_momentum, options.central_momentum, kHigh, learners);
}

}  // namespace arbalest::sma
