// Compares candidates, such as numbers of learners, by windows that are measured in turns: a disturbance or a drift of
// the machine then meets all of them. It is a pure state machine, like the Tuner.
//
// Each turn gives every open candidate a few windows. A candidate is done after some turns, once the standard error of
// its median is small enough, or once it is surely (by three standard errors) far behind the best, and in any case at
// the limit of windows. So there are as many windows as the error needs. Windows that other programs have disturbed are
// repeated (quiet_windows.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "autotuner/quiet_windows.h"
#include "autotuner/throughput.h"

namespace arbalest::autotuner {

struct ComparisonOptions {
  int windows_per_turn = 4;
  int fewest_turns = 3;
  int most_windows = 60;    // of a candidate, with those known before
  double precision = 0.01;  // relative standard error at which a candidate is exact enough
  double far_behind = 0.1;  // fraction of the best rate by which a candidate may lag to be worth exactness
  QuietOptions quiet{.most_lost = 0.05, .most_repeats = 40};
};

// What was measured of a candidate.
struct Measured {
  double rate = 0.0;         // examples per second: the median of the windows
  double error = 0.0;        // relative standard error of the rate
  int windows = 0;           // that count
  ProcessorUse processor{};  // in these windows
  // Examples per processor second: the median of the windows, and its relative standard error; 0 if not known.
  double per_processor_second = 0.0;
  double processor_error = 0.0;
};

class Comparison {
 public:
  // `known`: by candidate, windows that were measured before. The last of them count as well, at most as many as the
  // fewest turns add, so that new windows outweigh a state of the machine that has passed.
  Comparison(const ComparisonOptions& options, std::vector<std::vector<Window>> known);

  // The candidate to measure next; none once all are done.
  std::optional<std::size_t> next();
  // Adds a window of the candidate that next() returned. Returns whether its turn is over.
  bool add(const Window& window);
  // The candidate cannot run. It is never the next again.
  void drop(std::size_t candidate) { candidates_[candidate].is_dropped = true; }

  // None if nothing was measured.
  std::optional<Measured> measured(std::size_t candidate) const;
  // The largest error of the candidates that are not far behind; 1 if one of them was not measured.
  double largest_error() const;
  int turn() const noexcept { return turn_; }
  const QuietWindows& quiet() const noexcept { return quiet_; }

 private:
  struct Candidate {
    std::vector<Window> windows;
    int turns = 0;
    bool is_dropped = false;
  };

  bool is_far_behind(const Candidate& candidate) const;
  bool is_done(const Candidate& candidate) const;
  Measured measure(const Candidate& candidate) const;

  ComparisonOptions options_;
  std::vector<Candidate> candidates_;
  QuietWindows quiet_;
  std::size_t at_ = 0;  // the candidate of the present turn, or the first to look at
  int turn_ = 1;
  int windows_in_turn_ = 0;
};

// A candidate's place in a choice.
struct Contender {
  double worth = 0.0;  // what is compared: a rate or goodput
  double error = 0.0;  // relative standard error
};

// Returns the first contender that is surely (by one standard error of the ratio) within `hysteresis` of the best. The
// contenders are in order of preference, and there is one.
std::size_t choose(std::span<const Contender> contenders, double hysteresis);

// By how much the chosen contender is worse than the best, and the standard error of that fraction.
struct Shortfall {
  double fraction = 0.0;  // 0 if it is the best
  double error = 0.0;
  // An upper bound at a confidence of about 95 %: what may be promised.
  double at_most() const { return fraction + 2.0 * error; }
};
Shortfall shortfall(std::span<const Contender> contenders, std::size_t chosen);

}  // namespace arbalest::autotuner
