// The learners that have nothing to do, where learners do not take turns: in asynchronous SGD.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

#include "sma/staleness_clocks.h"

namespace arbalest::sma {

class IdleLearners {
 public:
  // The learners of these numbers are idle, in order of their numbers.
  void restart(std::size_t first, std::size_t learners) {
    learners_.resize(learners);
    std::iota(learners_.begin(), learners_.end(), first);
  }

  // Takes the learner that has been idle longest among those whose clock may start; none if there is no such learner.
  std::optional<std::size_t> take(const StalenessClocks& clocks) {
    const auto found = std::ranges::find_if(learners_, [&](std::size_t learner) { return clocks.may_start(learner); });
    if (found == learners_.end()) return std::nullopt;
    const std::size_t learner = *found;
    learners_.erase(found);
    return learner;
  }
  void put(std::size_t learner) { learners_.push_back(learner); }

  std::size_t size() const noexcept { return learners_.size(); }

 private:
  std::vector<std::size_t> learners_;  // the one that has been idle longest first
};

}  // namespace arbalest::sma
