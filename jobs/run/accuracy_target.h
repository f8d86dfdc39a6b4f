// Decides when a target accuracy counts as reached: when the lower median of the last five accuracies (of fewer, during
// the first five evaluations) is at or above the target (Koliousis et al., VLDB 2019).
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace arbalest::jobs {

class AccuracyTarget {
 public:
  explicit AccuracyTarget(std::optional<double> target) : target_(target) {}

  // Adds an evaluation; returns whether the target is reached now.
  bool add(double accuracy);

  // The last accuracies, oldest first, and the way to go on from those of an earlier process.
  const std::vector<double>& recent() const noexcept { return last_; }
  void continue_from(std::vector<double> recent) { last_ = std::move(recent); }

 private:
  std::optional<double> target_;
  std::vector<double> last_;  // oldest first
};

}  // namespace arbalest::jobs
