// Hands out work to the first idle learner that may start, where learners do not take turns: in asynchronous SGD.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sma/idle_learners.h"
#include "sma/staleness_clocks.h"

namespace arbalest::scheduler {

class Dispatcher {
 public:
  // All learners are idle, in order of their numbers, and their clocks are 0. `bound`: sma::StalenessClocks.
  void restart(std::size_t learners, std::optional<int> bound) {
    clocks_.restart(learners, bound);
    idle_.restart(0, learners);
    working_ = 0;
  }

  // The learner starts its next clock that has been idle longest among those whose clock may start; none if no idle
  // learner may start. If all learners are idle, the slowest may.
  std::optional<std::size_t> start() {
    const std::optional<std::size_t> learner = idle_.take(clocks_);
    if (!learner) return std::nullopt;
    ++working_;
    clocks_.start(*learner);
    return learner;
  }
  // The learner has completed its clock and is idle. Returns the staleness of its push.
  std::int64_t complete(std::size_t learner) {
    idle_.put(learner);
    --working_;
    return clocks_.complete(learner);
  }

  bool all_are_idle() const noexcept { return working_ == 0; }
  const sma::StalenessClocks& clocks() const noexcept { return clocks_; }

 private:
  sma::StalenessClocks clocks_;
  sma::IdleLearners idle_;
  std::size_t working_ = 0;
};

}  // namespace arbalest::scheduler
