// Detects that the throughput of the chosen count has moved and stays moved.
// The first windows after the choice are the baseline; blocks of later windows are compared with it by their medians. A
// move is lasting when two blocks in a row differ from the baseline in the same direction, each by more than 8 % and by
// more than four standard errors. A move is also lasting when the baseline itself differs as much from the search's
// measurement, and later blocks do not differ from the baseline.
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

  // `expected`: throughput that the search measured at this count.
  explicit Watch(double expected) : expected_(expected) {}

  // Returns the ratio of new to old throughput when a move turns out to be lasting, and at the end of every further
  // block while it lasts.
  std::optional<double> add(double rate);

  // Number of windows since the choice.
  int windows() const noexcept { return windows_; }
  // Median of the baseline's windows; while they are incomplete, of those so far. Call only after the first window.
  double baseline() const;
  // The rates of the last `windows` windows, at most kRecentWindows, or of all windows if there are fewer.
  std::vector<double> last(int windows) const;

 private:
  double expected_;
  int windows_ = 0;
  std::vector<double> baseline_;
  std::vector<double> recent_;  // the latest ones, oldest first; kRecentWindows of them, or more
  double noise_ = 0.0;
  std::optional<double> first_move_;  // ratio of the baseline to the expected throughput, if it has moved
  int moved_ = 0;                     // direction in which the last block moved: -1, 0 or 1
};

}  // namespace arbalest::autotuner
