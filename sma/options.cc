#include "sma/options.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/error.h"

namespace arbalest::sma {

using engine::ErrorKind;
using engine::fail;

namespace {

constexpr std::int64_t kBucketBytes = std::int64_t{4} << 20U;
constexpr int kMostClocksHeld = 16;  // clocks of a bound for which rings have slots

}  // namespace

std::string_view name_of(Scheme scheme) {
  switch (scheme) {
    case Scheme::kSma: return "sma";
    case Scheme::kEaSgd: return "ea_sgd";
    case Scheme::kSSgd: return "s_sgd";
    case Scheme::kLocalSgd: return "local_sgd";
    case Scheme::kBmuf: return "bmuf";
    case Scheme::kSlowMo: return "slow_mo";
    case Scheme::kDiloco: return "diloco";
    case Scheme::kLookahead: return "lookahead";
    case Scheme::kSwap: return "swap";
    case Scheme::kAsyncSgd: return "async_sgd";
    case Scheme::kHogwild: return "hogwild";
  }
  return "";
}

Options defaults_of(Scheme scheme) {
  Options options;
  options.scheme = scheme;
  options.momentum = 0.0F;
  switch (scheme) {
    case Scheme::kSma: options.momentum = 0.7F; break;
    case Scheme::kEaSgd:
      options.pull_of_all = 0.9F;
      options.period = 10;
      break;
    case Scheme::kSSgd: options.bucket_bytes = kBucketBytes; break;
    case Scheme::kLocalSgd: options.period = 4; break;
    case Scheme::kBmuf:
      options.momentum = std::nullopt;
      options.period = 50;
      break;
    case Scheme::kSlowMo:
      options.momentum = std::nullopt;
      options.period = 48;
      break;
    case Scheme::kDiloco:
      options.outer_rate = 0.7F;
      options.momentum = 0.9F;
      options.nesterov = true;
      options.period = 500;
      break;
    case Scheme::kLookahead:
      options.outer_rate = 0.5F;
      options.period = 5;
      break;
    case Scheme::kSwap:
    case Scheme::kHogwild: break;
    case Scheme::kAsyncSgd:
      options.bucket_bytes = kBucketBytes;  // if it is bulk-synchronous
      break;
  }
  return options;
}

bool Options::assigns() const {
  switch (scheme) {
    case Scheme::kLocalSgd:
    case Scheme::kBmuf:
    case Scheme::kSlowMo:
    case Scheme::kDiloco:
    case Scheme::kLookahead:
    case Scheme::kSwap: return true;
    case Scheme::kSma:
    case Scheme::kEaSgd:
    case Scheme::kSSgd:
    case Scheme::kAsyncSgd:
    case Scheme::kHogwild: break;
  }
  return false;
}

SynchronizationMode Options::mode(int learners) const {
  if (scheme == Scheme::kAsyncSgd) {
    if (learners == 1) return SynchronizationMode::kNone;
    // Every learner pushes one gradient, and all wait for each other: that is s_sgd.
    return staleness == 0 && period == 1 ? SynchronizationMode::kGradient : SynchronizationMode::kServer;
  }
  if (scheme == Scheme::kHogwild) return learners == 1 ? SynchronizationMode::kNone : SynchronizationMode::kShared;
  if (scheme == Scheme::kSSgd) return learners == 1 ? SynchronizationMode::kNone : SynchronizationMode::kGradient;
  if (!assigns()) return learners == 1 ? SynchronizationMode::kNone : SynchronizationMode::kPull;
  // A single learner would be assigned its own weights, and would keep its state or get the mean of one state.
  const bool changes_nothing = outer_rate == 1.0F && momentum_for(learners) == 0.0F && local_state != LocalState::kZero;
  return learners == 1 && changes_nothing ? SynchronizationMode::kNone : SynchronizationMode::kAssign;
}

float Options::pull_for(int learners) const { return pull.value_or(pull_of_all / static_cast<float>(learners)); }

float Options::rate_for(int learners) const {
  if (assigns()) return outer_rate;
  return pull ? static_cast<float>(learners) * *pull : pull_of_all;
}

float Options::step_for(int learners) const {
  return assigns() ? outer_rate / static_cast<float>(learners) : pull_for(learners);
}

float Options::momentum_for(int learners) const {
  if (momentum) return *momentum;
  if (scheme == Scheme::kBmuf) return 1.0F - 1.0F / static_cast<float>(learners);
  if (learners < 4) return 0.0F;
  if (learners < 8) return 0.2F;
  return learners < 16 ? 0.5F : 0.6F;
}

int Options::period_at(double learning_rate, int most) const {
  if (scheme == Scheme::kSwap) return std::numeric_limits<int>::max();
  double steps = period;
  if (rate_coefficient > 0.0) {
    const double ratio = learning_rate > 0.0 ? rate_coefficient / learning_rate : std::numeric_limits<double>::max();
    steps = std::max(steps, std::floor(ratio * ratio));
    steps = std::min(steps, static_cast<double>(std::max(most, period)));
  }
  return std::max(1, static_cast<int>(steps));
}

int Options::steps_per_iteration() const {
  const bool has_whole_rounds = scheme == Scheme::kSma || scheme == Scheme::kEaSgd || scheme == Scheme::kAsyncSgd;
  return has_whole_rounds ? period : 1;
}

int Options::steps_within_bound() const {
  if (scheme != Scheme::kAsyncSgd || !staleness) return 0;
  // One clock of the learner that stands still, or the bound and one clock more of another.
  return period * (clocks_apart() + 2);
}

int Options::clocks_apart() const { return std::min(staleness.value_or(kMostClocksHeld), kMostClocksHeld); }

int most_steps_within_bound(std::span<const Options> schemes) {
  int most = 0;
  for (const Options& options : schemes) most = std::max(most, options.steps_within_bound());
  return most;
}

int longest_iteration(std::span<const Options> schemes) {
  int longest = 1;
  for (const Options& options : schemes) longest = std::max(longest, options.steps_per_iteration());
  return longest;
}

namespace {

void check_range(std::string_view name, float value, bool is_good, const char* range) {
  if (!is_good) fail(ErrorKind::kInvalidJob, "{} must be in {}, not {}", name, range, value);
}

void check_pull(const Options& options, int learners) {
  const float pull = options.pull_for(learners);
  const float mu = options.momentum_for(learners);
  const char* name = options.scheme == Scheme::kSma ? "alpha" : "beta / learners";
  check_range(name, pull, pull > 0.0F && pull <= 1.0F, "(0, 1]");
  if (learners == 1) return;  // plain SGD: nothing is averaged
  const float of_all = options.rate_for(learners);
  const float bound = (1.0F + mu) * (2.0F - pull);
  if (of_all < bound) return;
  if (options.scheme == Scheme::kEaSgd) {
    fail(ErrorKind::kInvalidJob,
         "{} learners with beta {} are unstable: beta must stay below 2 - beta / learners, that is below {:.3g}; lower "
         "beta",
         learners, of_all, 2.0F * static_cast<float>(learners) / static_cast<float>(learners + 1));
  }
  fail(ErrorKind::kInvalidJob,
       "{} learners with alpha {} and central_momentum {} are unstable: learners x alpha = {:.3g} must stay below (1 + "
       "central_momentum)(2 - alpha) = {:.3g}; leave alpha unset (it is then 1/learners)",
       learners, pull, mu, of_all, bound);
}

void check_assignment(const Options& options, int learners) {
  const float eta = options.outer_rate;
  const float mu = options.momentum_for(learners);
  check_range("rate", eta, eta > 0.0F && std::isfinite(eta), "(0, 2 (1 + momentum))");
  const float bound = options.nesterov ? 2.0F * (1.0F + mu) / (1.0F + 2.0F * mu) : 2.0F * (1.0F + mu);
  if (eta >= bound) {
    fail(ErrorKind::kInvalidJob,
         "{} with rate {} and momentum {} is unstable: rate must stay below {} = {:.4g}; lower rate",
         name_of(options.scheme), eta, mu,
         options.nesterov ? "2 (1 + momentum) / (1 + 2 momentum)" : "2 (1 + momentum)", bound);
  }
}

}  // namespace

void check(const Options& options, int learners) {
  if (options.period < 1) fail(ErrorKind::kInvalidJob, "period must be at least 1, not {}", options.period);
  if (!options.assigns() && options.scheme != Scheme::kSma && options.scheme != Scheme::kEaSgd) return;
  const float mu = options.momentum_for(learners);
  check_range(options.assigns() ? "momentum" : "central_momentum", mu, mu >= 0.0F && mu < 1.0F, "[0, 1)");
  if (options.assigns()) {
    check_assignment(options, learners);
  } else {
    check_pull(options, learners);
  }
}

std::string warning(const Options& options, int learners, float local_momentum, bool scales_linearly, bool warms_up) {
  constexpr float kHigh = 0.8F;
  constexpr float kGain = 1.5F;
  constexpr int kEnoughLearners = 16;
  constexpr int kManyPushing = 3;
  const float mu = options.momentum_for(learners);
  const bool pushes_whole_steps = options.mode(learners) == SynchronizationMode::kServer && !options.scale_by_staleness;
  if (options.mode(learners) == SynchronizationMode::kServer && options.period > 1 && local_momentum >= kHigh) {
    return fmt::format(
        "a push is the sum of {} gradients, and the optimizer's momentum {} multiplies it by {:.3g} in the long run: "
        "lower "
        "push_every, that momentum or the learning rate if the loss rises",
        options.period, local_momentum, 1.0F / (1.0F - local_momentum));
  }
  if (pushes_whole_steps && learners >= kManyPushing && local_momentum >= kHigh) {
    return fmt::format(
        "{} learners that push to a server without waiting act like a momentum of about 1 - 1 / learners = {:.2g} "
        "(Mitliagkas et al., 2016), besides the optimizer's momentum {}: lower that or the learning rate, or set "
        "async_sgd.scale_by_staleness, if the loss rises",
        learners, 1.0F - 1.0F / static_cast<float>(learners), local_momentum);
  }
  if (options.mode(learners) == SynchronizationMode::kPull && learners < kEnoughLearners && local_momentum >= kHigh &&
      mu >= kHigh) {
    return fmt::format(
        "momentum {} and central_momentum {} are both at least {} with {} learners: the largest stable learning rate "
        "shrinks several-fold; lower one of them if the loss rises",
        local_momentum, mu, kHigh, learners);
  }
  const float gain = options.rate_for(learners) / (1.0F - mu);
  if (options.mode(learners) == SynchronizationMode::kAssign && learners > 1 && gain > kGain && scales_linearly &&
      !warms_up) {
    return fmt::format(
        "{} multiplies the effective learning rate by rate / (1 - momentum) = {:.3g}, and with_learners: LINEAR "
        "by {} more, without a warm-up; set with_learners: KEEP or learning_rate.warm_up if the loss rises",
        name_of(options.scheme), gain, learners);
  }
  return "";
}

}  // namespace arbalest::sma
