// Decides when a target accuracy counts as reached: when the lower median of the last five accuracies (of fewer, during
// the first five evaluations) is at or above the target (Koliousis et al., VLDB 2019).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arbalest::jobs {

// The number that is compared with the target.
struct HeldAccuracy {
  double accuracy = 0.0;  // lower median of the last evaluations
  int evaluations = 0;    // how many: 1 to 5

  bool operator==(const HeldAccuracy&) const = default;
};

// "the lower median of the last 3 evaluations is 98.12 %", with decimals that show on which side of the target it is
std::string to_string(const HeldAccuracy& held, double target);

class AccuracyTarget {
 public:
  explicit AccuracyTarget(std::optional<double> target) : target_(target) {}

  // Adds an evaluation; returns whether the target is reached now.
  bool add(double accuracy);

  bool is_reached() const;
  // None before the first evaluation.
  std::optional<HeldAccuracy> held() const;
  // The last accuracies, oldest first, and the way to go on from those of an earlier process.
  const std::vector<double>& recent() const noexcept { return last_; }
  void continue_from(std::vector<double> recent) { last_ = std::move(recent); }

 private:
  std::optional<double> target_;
  std::vector<double> last_;  // oldest first
};

}  // namespace arbalest::jobs
