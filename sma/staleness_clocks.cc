#include "sma/staleness_clocks.h"

#include <algorithm>

namespace arbalest::sma {

void add(StalenessCounts& to, const StalenessCounts& more) {
  for (const auto& [staleness, pushes] : more) to[staleness] += pushes;
}

void StalenessClocks::restart(std::size_t learners, std::optional<int> bound) {
  bound_ = bound;
  pushes_ = 0;
  clocks_.assign(learners, 0);
  started_.assign(learners, 0);
}

bool StalenessClocks::may_start(std::size_t learner) const {
  return !bound_ || clocks_[learner] - std::ranges::min(clocks_) <= *bound_;
}

void StalenessClocks::start(std::size_t learner) { started_[learner] = pushes_; }

std::int64_t StalenessClocks::complete(std::size_t learner) {
  ++clocks_[learner];
  return pushes_++ - started_[learner];
}

}  // namespace arbalest::sma
