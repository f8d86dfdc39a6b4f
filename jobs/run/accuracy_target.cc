#include "jobs/run/accuracy_target.h"

#include <algorithm>

namespace arbalest::jobs {

bool AccuracyTarget::add(double accuracy) {
  constexpr std::size_t kWindow = 5;
  last_.push_back(accuracy);
  if (last_.size() > kWindow) last_.erase(last_.begin());
  std::vector<double> sorted = last_;
  std::ranges::sort(sorted);
  return target_.has_value() && sorted[(sorted.size() - 1) / 2] >= *target_;
}

}  // namespace arbalest::jobs
