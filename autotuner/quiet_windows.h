// Sorts out windows that other programs have disturbed, so that they are measured again.
//
// A window that lost more than `most_lost` of the processor time that it wanted is left out, but not without end: after
// `most_repeats` of them in one measurement the machine counts as busy, and all windows of the search count from then
// on, because a run must decide. Windows whose processor time is unknown count.
#pragma once

#include "autotuner/throughput.h"

namespace arbalest::autotuner {

struct QuietOptions {
  double most_lost = 0.05;  // fraction of the wanted processor time
  int most_repeats = 16;    // windows that may be left out for one number of learners
};

class QuietWindows {
 public:
  explicit QuietWindows(const QuietOptions& options = {}) : options_(options) {}

  // A new search begins: it hopes for a quiet machine again.
  void begin_search() { *this = QuietWindows(options_); }
  // A new measurement begins within the search, of another number of learners.
  void begin_measurement() { repeats_ = 0; }
  // Whether the window counts; if not, another one must take its place.
  bool counts(const Window& window);

  // Whether every window that has counted was quiet, or nothing is known of any.
  bool is_quiet() const { return !is_busy_; }
  // Whether the processor time of any window was known.
  bool is_known() const { return all_.is_known(); }
  // Windows left out in this search.
  int left_out() const { return left_out_; }
  // Processor time of all windows of this search: those that counted, and those left out.
  const ProcessorUse& all() const { return all_; }

 private:
  QuietOptions options_;
  int repeats_ = 0;
  int left_out_ = 0;
  bool is_busy_ = false;
  ProcessorUse all_;
};

}  // namespace arbalest::autotuner
