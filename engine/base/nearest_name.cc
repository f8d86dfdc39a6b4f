#include "engine/base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace arbalest::engine {

namespace {

// Number of insertions, deletions, substitutions and swaps of neighbors that turn `a` into `b` (optimal string
// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row{i};
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row.push_back(std::min({last[j] + 1, row[j - 1] + 1, substitution}));
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

// Largest edit distance of a likely typo; small for short names, because all short names are close to each other.
std::size_t most_edits(std::size_t length) {
  if (length <= 1) return 0;
  return length <= 3 ? 1 : std::max<std::size_t>(2, length / 3);
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = most_edits(name.size()) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : "; did you mean '" + nearest + "'?";
}

}  // namespace arbalest::engine
