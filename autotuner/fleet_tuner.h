// The tuner of a run: one count for devices that are alike, one for each kind when they differ.
//
// A round ends with its slowest device, so what a device does for the run is seen in the throughput of all of them.
// Devices of several kinds therefore begin with one search together, with the same count on every device; then the
// kinds take turns in searching around that, each with the others left as they are. Whoever was last keeps watching,
// and the others get their turn again when it changes something. Where an earlier search has ended with other counts
// for one kind than for another, the turns begin at once. What did not fit in memory in a kind's turn is not tried in
// its later ones; what did not fit all of them together may be, as it may fit one kind alone.
//
// Who calls what is described in tuner.h; a run with one device uses this class just the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autotuner/tuner.h"

namespace arbalest::autotuner {

// Devices of the same model, with the same number of cores.
struct DeviceKind {
  int devices = 1;
  std::vector<Configuration> space;  // of each, as for Tuner
};

struct FleetDecision {
  Decision step;                  // `done` and `reason` are meant for the devices whose turn it is
  std::vector<Configuration> to;  // by kind: what each of its devices should run with
  bool done = false;              // nobody searches any more
};

class FleetTuner {
 public:
  // Throws std::invalid_argument as Tuner does, if there is no kind, or if no count is in the spaces of all kinds.
  // `guesses`: as for Tuner, one for each kind; or none at all. `extent`: of the first search of all together.
  FleetTuner(const TunerOptions& options, std::vector<DeviceKind> kinds, const std::vector<int>& guesses = {},
             Extent extent = Extent::kEverywhere);

  // By kind: what should be running now; before the first decision what the run begins with.
  const std::vector<Configuration>& present() const noexcept { return present_; }

  std::optional<FleetDecision> add(std::int64_t tasks, std::int64_t examples, double seconds);
  // As for Tuner: the resize that was decided last.
  FleetDecision out_of_memory();
  // As for Tuner: of all devices and kinds together.
  void set_efficiency(const Efficiency& efficiency);

  bool searching() const noexcept { return turns_left_ > 0 || turn_is_over_ || tuner_.searching(); }
  // Whose turn it is, or was: its measurements are what `arbalest tune` prints.
  const Tuner& tuner() const noexcept { return tuner_; }
  // By kind: what runs while the devices whose turn it is have `learners`, a number of their space.
  std::vector<Configuration> beside_others(int learners) const;

 private:
  FleetDecision carry(const Decision& step);
  void take_next_turn();

  TunerOptions options_;
  std::vector<DeviceKind> kinds_;
  Tuner tuner_;                           // of the present turn
  std::optional<Efficiency> efficiency_;  // none: throughput decides
  std::optional<std::size_t> turn_;       // none: all together
  std::vector<Configuration> present_;
  int began_with_ = 0;  // learners, the present turn
  int turns_left_;
  bool rests_ = false;         // every kind has had its turn
  bool turn_is_over_ = false;  // the next one begins when the last resize has worked
};

}  // namespace arbalest::autotuner
