#include "train/learners/failed_counts.h"

#include <algorithm>
#include <functional>

namespace arbalest::jobs {

void FailedCounts::add(const std::vector<int>& from, const std::vector<int>& to) {
  lost_.push_back({to, !std::ranges::equal(to, from, std::less_equal())});
}

bool FailedCounts::contain(const std::vector<int>& counts) const {
  return std::ranges::any_of(lost_, [&](const Lost& lost) {
    return lost.grew ? std::ranges::equal(counts, lost.counts, std::greater_equal()) : counts == lost.counts;
  });
}

}  // namespace arbalest::jobs
