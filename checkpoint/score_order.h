// Compares scores of a run's models: accuracies, of which the larger one is better, or errors.
#pragma once

#include <optional>

namespace arbalest::jobs {

struct ScoreOrder {
  bool smaller_is_better = false;

  bool is_better(double score, double than) const noexcept { return smaller_is_better ? score < than : score > than; }

  // Returns the better one; none if there is neither.
  std::optional<double> better(const std::optional<double>& a, const std::optional<double>& b) const noexcept {
    if (!a || !b) return a ? a : b;
    return is_better(*a, *b) ? a : b;
  }

  // Returns whether a score is better than the best one before by at least so much. A first score is. A model without a
  // score has not improved.
  bool improves(const std::optional<double>& score, const std::optional<double>& best, double by) const noexcept {
    if (!score || !best) return score.has_value();
    return is_better(*score, *best) && (smaller_is_better ? *best - *score : *score - *best) >= by;
  }
};

}  // namespace arbalest::jobs
