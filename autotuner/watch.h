// Notices when the throughput of the chosen count has moved and stays moved.
//
// The windows after the choice become the baseline; blocks of later ones are compared with it by their medians. A move
// is lasting when two blocks in a row differ from the baseline in the same direction, each by more than 8 % and by more
// than four standard errors; or when the baseline itself differs so from what the search had measured, and later blocks
// do not from the baseline.
#pragma once

#include <optional>
#include <vector>

#include "autotuner/throughput.h"

namespace arbalest::autotuner {

class Watch {
 public:
  static constexpr int kBaselineWindows = 32;
  static constexpr int kBlockWindows = 16;
  static constexpr int kRecentWindows = 64;

  // `expected`: what the search has measured at this count.
  explicit Watch(double expected) : expected_(expected) {}

  // The ratio of new to old throughput when a move turns out to be lasting, and at the end of every block as long as it
  // does.
  std::optional<double> add(double rate);

  // Windows since the choice.
  int windows() const noexcept { return windows_; }
  // Median of the first windows; of those that there are while they are fewer. Not before the first.
  double baseline() const;
  // The rates of the last `windows` windows, at most kRecentWindows; of those that there are if they are fewer.
  std::vector<double> last(int windows) const;

 private:
  double expected_;
  int windows_ = 0;
  std::vector<double> baseline_;
  std::vector<double> recent_;  // the last ones, oldest first; at least kRecentWindows
  double noise_ = 0.0;
  std::optional<double> first_move_;  // of the baseline, from what was expected
  int moved_ = 0;                     // -1, 1: so was the last block
};

}  // namespace arbalest::autotuner
