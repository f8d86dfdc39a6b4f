// How replicas are averaged (design: "Synchronous model averaging").
#pragma once

#include <optional>
#include <string>

namespace arbalest::sma {

struct Options {
  std::optional<float> alpha;     // pull towards the central model, in (0, 1]; unset: 1/k
  float central_momentum = 0.7F;  // mu, in [0, 1)
  int period = 1;                 // tau: tasks of each learner in a round

  // The pull for k learners.
  float alpha_for(int learners) const { return alpha.value_or(1.0F / static_cast<float>(learners)); }
};

// Throws engine::ErrorKind::kInvalidJob for alpha outside (0, 1], mu outside [0, 1), period < 1, or k alpha >= (1 + mu)
// (2 - alpha), beyond which replicas and central model oscillate apart.
void check(const Options& options, int learners);

// Settings that are stable but shrink the usable learning rate several-fold: local and central momentum both at least
// 0.8 with fewer than 16 learners. "" if there is nothing to say.
std::string warning(const Options& options, float local_momentum, int learners);

}  // namespace arbalest::sma
