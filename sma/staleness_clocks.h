// The clocks of learners that train against a central model without rounds, and the bound on how far they may run
// apart.
//
// A learner's clock counts what it has pushed. With the stale synchronous parallel bound s (Ho et al., "More effective
// distributed ML via a stale synchronous parallel parameter server", NIPS 2013) a learner that has completed c clocks
// may start the next one while the slowest learner has completed c - s or more. s = 0 is bulk-synchronous; without a
// bound nobody waits.
//
// A learner pulls the model when it starts a clock and pushes a gradient when it completes it. The staleness of a push
// is the number of pushes of other learners in between. With k learners it is at most (k - 1)(2 s + 1): at the pull
// another learner is at most s clocks behind, and at the push it has completed at most s + 1 clocks more than this one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace arbalest::sma {

// Counts pushes, or steps on shared weights, by staleness.
using StalenessCounts = std::map<std::int64_t, std::int64_t>;
void add(StalenessCounts& to, const StalenessCounts& more);

class StalenessClocks {
 public:
  // All clocks are 0, and no learner has started. `bound`: s; none: no bound.
  void restart(std::size_t learners, std::optional<int> bound);

  // Whether the learner, which is idle, may start its next clock.
  bool may_start(std::size_t learner) const;
  // The learner pulls the model, after all pushes so far.
  void start(std::size_t learner);
  // The learner pushes. Returns the staleness of the push.
  std::int64_t complete(std::size_t learner);

  // Clocks that the learner has completed.
  std::int64_t clock(std::size_t learner) const { return clocks_[learner]; }

 private:
  std::optional<int> bound_;
  std::int64_t pushes_ = 0;            // of all learners
  std::vector<std::int64_t> clocks_;   // by learner
  std::vector<std::int64_t> started_;  // by learner: pushes_ at the last start
};

}  // namespace arbalest::sma
