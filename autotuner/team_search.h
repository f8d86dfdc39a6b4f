// Searches the size of teams: how many learners of a device train together on one stream. Like the Tuner it is a pure
// state machine.
//
// It begins at the choice of a search for the number of learners, and climbs by octaves. Beside the best configuration
// so far it tries, in this order,
//   1. teams twice as large, of as many learners: half as many streams;
//   2. teams twice as large on as many streams: where launches bound a step, larger teams make more learners
//   worthwhile;
//   3. teams half as large, of as many learners, if nothing was better than the start.
// A configuration becomes the best if it is surely better by more than the hysteresis. The search ends when nothing is
// left beside the best, or after kMostProbes. A search for the number of learners must follow, which adds streams.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autotuner/tuner.h"

namespace arbalest::autotuner {

struct TeamLimits {
  int most_learners = 1;  // of a device
  // Learners of a device for which there is memory at a time. Those before and after a change of the teams coexist.
  int most_at_once = 1;
};

class TeamSearch {
 public:
  static constexpr int kMostProbes = 6;

  // `start`: what was measured of the present configuration. `options`: for the devices, all of one kind, with the
  // objective.
  TeamSearch(const TunerOptions& options, const TeamLimits& limits, const Point& start);

  // Whether there is anything to try at the start. Then begin() returns the first probe.
  bool has_work() const { return next().has_value(); }
  Decision begin();
  // As for Tuner. The last decision is `done`: it goes to the best.
  std::optional<Decision> add(std::int64_t tasks, std::int64_t examples, double seconds, const ProcessorUse& processor);
  bool completes_window(std::int64_t tasks, std::int64_t examples, double seconds) const {
    return probe_ && probe_->completes_window(tasks, examples, seconds);
  }
  // As for Tuner; the search goes on from the configuration before. If the last decision failed, that is the choice.
  Decision out_of_memory();
  void set_objective(const Objective& objective) { options_.search.objective = objective; }

  bool has_begun() const { return tried_.size() > 1; }
  bool has_ended() const noexcept { return has_ended_; }
  // Whether the choice differs from the start.
  bool has_changed() const { return best_.configuration != start_; }
  const Configuration& best() const noexcept { return best_.configuration; }
  bool is_quiet() const noexcept { return is_quiet_; }

 private:
  std::optional<Configuration> next() const;
  bool is_better(const Point& point) const;
  // The next probe, or the end. `cause`: a sentence that precedes the reason, or "".
  Decision step(const std::string& cause);
  Decision go(const Configuration& to, bool done, std::string reason);

  TunerOptions options_;
  TeamLimits limits_;
  Configuration start_;
  Point best_;
  Configuration present_;
  Configuration before_;              // present_ before the last decision
  std::vector<Configuration> tried_;  // the start included
  std::optional<Tuner> probe_;        // of the present configuration alone
  Point measured_;                    // the last one
  double noise_ = 0.0;                // in its windows
  int measured_windows_ = 0;
  bool has_ended_ = false;
  bool is_quiet_ = true;
};

}  // namespace arbalest::autotuner
