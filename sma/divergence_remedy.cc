#include "sma/divergence_remedy.h"

#include <fmt/format.h>

namespace arbalest::sma {

namespace {

constexpr const char* kLowerRate = "lower learning_rate.base";

// "0.75", from 4 learners
std::string implicit_momentum(int learners) {
  return fmt::format("{:.2g}", 1.0F - 1.0F / static_cast<float>(learners));
}

std::string fewer_learners(int learners) {
  return fmt::format("train fewer learners ({} that do not wait for each other act like a momentum of {})", learners,
                     implicit_momentum(learners));
}

// The remedies that all schemes without rounds share.
std::string without_rounds(int learners, float momentum) {
  if (momentum == 0.0F) return fmt::format("{}, or {}", kLowerRate, fewer_learners(learners));
  return fmt::format("{} or the optimizer's momentum {:g}, or {}", kLowerRate, momentum, fewer_learners(learners));
}

}  // namespace

std::string divergence_remedy(const Options& options, int learners, float momentum) {
  const SynchronizationMode mode = options.mode(learners);
  if (mode == SynchronizationMode::kShared) return without_rounds(learners, momentum);
  if (mode != SynchronizationMode::kServer) return kLowerRate;
  std::string remedy = without_rounds(learners, momentum);
  if (!options.staleness) {
    remedy += ", or bound async_sgd.staleness";
  } else if (*options.staleness > 0) {
    remedy += fmt::format(", or lower async_sgd.staleness: {}", *options.staleness);
  }
  if (!options.scale_by_staleness) remedy += ", or set async_sgd.scale_by_staleness: true";
  if (options.period > 1) {
    remedy += fmt::format(", or lower async_sgd.push_every, as a push is the sum of {} gradients", options.period);
  }
  return remedy;
}

std::string hogwild_rows_remedy(int learners) {
  return learners == 1 ? std::string(kLowerRate) : without_rounds(learners, 0.0F);
}

std::string delayed_proximal_remedy(int max_delay) {
  const char* const step = "lower delayed_proximal.step or largest_bound";
  if (max_delay == 0) return step;
  return fmt::format("{}, or lower delayed_proximal.max_delay, as gradients miss the steps of {} {}", step, max_delay,
                     max_delay == 1 ? "block" : "blocks");
}

}  // namespace arbalest::sma
