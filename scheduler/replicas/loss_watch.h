// Watches the training loss for a spike: a lasting rise far above what it was. Noise of single mini-batches is no
// spike, and neither is the loss of the first epoch, which changes most.
//
// The losses are averaged over windows of successive mini-batches. A window is *high* if its mean is above `factor`
// times the median of the last kReference windows that were not high, and above half of the mean of the run's first
// window: a small loss may well be a multiple of a smaller one. kHighWindows high windows in a row are a spike. Windows
// are not judged before the first epoch has ended and kReference windows are known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace arbalest::scheduler {

struct SpikeRule {
  double factor = 3.0;
  std::int64_t window_examples = 1024;  // a window has at least these examples, and
  std::int64_t window_batches = 32;     // at least these mini-batches
  std::uint64_t first_batch = 0;        // windows that begin before this mini-batch are not judged

  // Mini-batches of a window, if each has `batch_size` examples.
  std::int64_t batches_of_window(std::int64_t batch_size) const {
    return std::max(window_batches, (window_examples + batch_size - 1) / batch_size);
  }
};

// Later decisions depend on this, so a checkpoint holds it.
struct LossHistory {
  // The window under way.
  std::int64_t batches = 0;
  std::int64_t examples = 0;
  double loss_sum = 0.0;
  std::optional<double> first = {};  // mean of the run's first window
  std::vector<double> recent = {};   // means of the last windows that were not high, oldest first
  int high_windows = 0;              // high windows in a row
};

struct LossSpike {
  double loss = 0.0;   // mean of the last window
  double usual = 0.0;  // median of the windows before the rise
};

class LossWatch {
 public:
  static constexpr std::size_t kReference = 9;
  static constexpr int kHighWindows = 2;

  explicit LossWatch(const SpikeRule& rule);

  // Adds the result of mini-batch `number`; mini-batches must come in order. Returns the spike that it completes. Does
  // not allocate.
  std::optional<LossSpike> add(std::uint64_t number, std::int64_t examples, double loss_sum);

  const LossHistory& history() const noexcept { return history_; }
  void continue_from(const LossHistory& history);

 private:
  std::optional<LossSpike> judge(std::uint64_t begin, double mean);

  SpikeRule rule_;
  LossHistory history_;
};

}  // namespace arbalest::scheduler
