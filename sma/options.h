// The schemes that keep the replicas of a run together. One outer update with eight parameters covers every scheme that
// averages weights; s_sgd averages gradients instead, async_sgd has a server that applies gradients as they come, and
// under hogwild all learners write one vector of weights.
//
// In round t each of k replicas takes tau local steps from w_j. With d_j = w_j - z and D = (1/k) sum_j d_j,
//   v <- mu rho v + eta D                            rho = 1, or gamma_t / gamma_{t-1} (SlowMo)
//   z+ = z + v                                       heavy ball, or
//   z+ = z + eta D + mu v                            Nesterov, in the form of torch.optim.SGD
//   w_j <- w_j - a (w_j - z)                         pull towards the old central model, or
//   w_j <- z+                                        assignment of the new one (a = 1)
// and the local optimizer's state is kept, zeroed or averaged.
//
//   scheme      a     eta   mu         rule        tau            source
//   sma         1/k   k a   0.7        heavy ball  1              Koliousis et al., VLDB 2019, algorithm 1
//   ea_sgd      b/k   k a   0          heavy ball  10             Zhang, Choromanska, LeCun, NIPS 2015
//   local_sgd   new   1     0          -           4, or QSR      Lin et al., ICLR 2020; QSR: Gu et al., ICLR 2024
//   bmuf        new   1     1 - 1/k    either      50             Chen and Huo, ICASSP 2016
//   slow_mo     new   1     by k       heavy ball  48             Wang et al., ICLR 2020
//   diloco      new   0.7   0.9        Nesterov    500            Douillard et al., 2023
//   lookahead   new   0.5   0          -           5              Zhang et al., NeurIPS 2019
//   swap        new   1     0          -           never          Gupta et al., ICLR 2020
// Outer momentum multiplies the effective learning rate by the gain G = eta / (1 - mu). For sma and ea_sgd the gain is
// about 1 for every mu, because replicas keep their own positions.
//
//   async_sgd   a server applies each gradient to w* with the job's optimizer; the learner then continues from w*.
//               tau: mini-batches of a push, with local steps of plain SGD in between
//               Dean et al., NIPS 2012; bound of staleness: Ho et al., NIPS 2013 (sma/staleness_clocks.h)
//   hogwild     a learner copies the shared w, and later takes its own optimizer's step on w, without a lock
//               Niu et al., NIPS 2011 (engine/shared_weights.h)
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace arbalest::sma {

enum class Scheme { kSma, kEaSgd, kSSgd, kLocalSgd, kBmuf, kSlowMo, kDiloco, kLookahead, kSwap, kAsyncSgd, kHogwild };

// The scheme's name in a job file: "s_sgd".
std::string_view name_of(Scheme scheme);

// The synchronization mode between the replicas' rounds. A scheduler needs to know nothing else about a scheme.
enum class SynchronizationMode {
  // There is one replica, and averaging would not change it: it never waits.
  kNone,
  // A round's last update pulls towards the old central model: it waits until averaging has read the weights.
  kPull,
  // After a round's last update the new central model becomes the weights: the next gradient waits.
  kAssign,
  // Every replica applies the mean of the gradients: each update waits for it.
  kGradient,
  // There are no rounds: a server applies each gradient as it comes, and the replica then gets the server's weights.
  kServer,
  // There are no rounds, and replicas never wait: each copies the shared weights before a gradient, and writes its
  // step to them.
  kShared,
};

// The local optimizer's state when the new central model is assigned.
enum class LocalState { kKeep, kZero, kAverage };

struct Options {
  Scheme scheme = Scheme::kSma;
  std::optional<float> pull;             // a, for sma and ea_sgd; unset: pull_of_all / k
  float pull_of_all = 1.0F;              // k a if `pull` is unset; beta of ea_sgd
  float outer_rate = 1.0F;               // eta if the central model is assigned; for sma and ea_sgd eta is k a
  std::optional<float> momentum = 0.7F;  // mu; unset: depends on the number of learners (momentum_for)
  bool nesterov = false;
  int period = 1;  // tau, mini-batches of each learner between two averagings
  // QSR: tau = max(period, floor((rate_coefficient / gamma)^2)), gamma the learning rate; 0: tau is `period`.
  double rate_coefficient = 0.0;
  LocalState local_state = LocalState::kKeep;
  std::int64_t bucket_bytes = 0;  // s_sgd: size of the gradient's parts that are reduced at once
  // async_sgd: clocks, of `period` mini-batches, that a learner may be ahead of the slowest; unset: there is no bound.
  std::optional<int> staleness = {};
  bool scale_by_staleness = false;  // async_sgd: the learning rate of a push is divided by 1 + its staleness

  bool assigns() const;
  SynchronizationMode mode(int learners) const;
  // a for k learners.
  float pull_for(int learners) const;
  // eta and eta / k for k learners.
  float rate_for(int learners) const;
  float step_for(int learners) const;
  // mu for k learners. bmuf: 1 - 1/k; slow_mo: 0 below 4 learners, 0.2 from 4, 0.5 from 8, 0.6 from 16 on (the paper's
  // values).
  float momentum_for(int learners) const;
  // tau at learning rate gamma, at most `most` (at least 1). swap: unlimited.
  int period_at(double learning_rate, int most) const;
  // Steps of each learner that are enqueued at once. For sma and ea_sgd a whole round, so that it has one learning
  // rate. For the others 1: their rounds may be long, and may stop or resize at any step.
  // async_sgd: the mini-batches of a push.
  int steps_per_iteration() const;
  // Steps of each learner whose mini-batches a ring must hold, so that a learner that stands still does not stop the
  // others before their bound does. 0: the scheme asks for no slots of its own.
  int steps_within_bound() const;
  // async_sgd: clocks that the learners of one process may be ahead of those of another one: the bound, but no more
  // than a process can keep mini-batches for.
  int clocks_apart() const;
  // Whether a switch to this scheme keeps the optimizers' state: it does where replicas may differ and each has its own
  // momentum.
  bool keeps_state_at_switch() const {
    return scheme == Scheme::kHogwild || (assigns() && local_state != LocalState::kZero);
  }
};

// The largest number of steps that any of the schemes enqueues at once.
int longest_iteration(std::span<const Options> schemes);
// The largest steps_within_bound() of the schemes.
int most_steps_within_bound(std::span<const Options> schemes);

// The options of a scheme with its defaults.
Options defaults_of(Scheme scheme);

// Throws engine::ErrorKind::kInvalidJob for a parameter outside its bounds, or for a combination beyond these bounds of
// stability, where replicas and central model oscillate apart:
//   kAssign, heavy ball: eta < 2 (1 + mu)      Nesterov: eta < 2 (1 + mu) / (1 + 2 mu)
//   kPull: k a < (1 + mu)(2 - a)
void check(const Options& options, int learners);

// Describes a combination that is stable but rarely wanted; "" if there is none. local_momentum: the optimizer's;
// scales_linearly: the learning rate is multiplied by k; warms_up: it has a warm-up.
std::string warning(const Options& options, int learners, float local_momentum, bool scales_linearly, bool warms_up);

}  // namespace arbalest::sma
