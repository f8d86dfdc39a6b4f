// The tuner of a run. Equal devices get one count; if devices differ, each kind of device gets its own.
//
// A round ends with its slowest device, so the effect of one device shows in the throughput of all. With several kinds,
// the first search therefore gives every device the same count. Then the kinds take turns: each searches around the
// present counts while the others stay as they are. The kind that searched last keeps watching; if it changes its
// count, the others get another turn. If an earlier search has ended with different counts per kind, the turns begin at
// once. A count that did not fit in memory in a kind's turn is not tried in its later turns. A count that did not fit
// on all devices together may be tried again, because it may fit on one kind alone.
//
// tuner.h describes who calls what; a run with one device uses this class in the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autotuner/tuner.h"

namespace arbalest::autotuner {

// Devices of the same model, with the same number of cores.
struct DeviceKind {
  int devices = 1;
  std::vector<Configuration> space;  // space of each device, as for Tuner
};

struct DevicesDecision {
  Decision step;                  // `done` and `reason` concern the devices whose turn it is
  std::vector<Configuration> to;  // by kind: the configuration for each of its devices
  bool done = false;              // whether all searches have ended
};

class DevicesTuner {
 public:
  // Throws std::invalid_argument as Tuner does, if there is no kind, or if no count is in the spaces of all kinds.
  // `guesses`: as for Tuner, one per kind, or empty. `extent`: for the first search, of all devices together.
  DevicesTuner(const TunerOptions& options, std::vector<DeviceKind> kinds, const std::vector<int>& guesses = {},
               Extent extent = Extent::kEverywhere);

  // By kind: the configuration to run now; before the first decision, the configuration that the run begins with.
  const std::vector<Configuration>& present() const noexcept { return present_; }

  std::optional<DevicesDecision> add(std::int64_t tasks, std::int64_t examples, double seconds,
                                     const ProcessorUse& processor = {});
  // Whether add() with the same numbers will complete a window.
  bool completes_window(std::int64_t tasks, std::int64_t examples, double seconds) const {
    return tuner_.completes_window(tasks, examples, seconds);
  }
  // As Tuner::out_of_memory(), for the latest resize.
  DevicesDecision out_of_memory();
  // As Tuner::set_efficiency(), for all devices and kinds together.
  void set_efficiency(const Efficiency& efficiency);

  bool searching() const noexcept { return turns_left_ > 0 || turn_is_over_ || tuner_.searching(); }
  // Whether the machine was quiet in all turns.
  bool is_quiet() const { return earlier_turns_were_quiet_ && tuner_.quiet().is_quiet(); }
  // The tuner of the present or last turn. `arbalest tune` prints its measurements.
  const Tuner& tuner() const noexcept { return tuner_; }
  // By kind: the configurations while the devices whose turn it is have `learners`, which must be in their space.
  std::vector<Configuration> beside_others(int learners) const;

 private:
  DevicesDecision carry(const Decision& step);
  void take_next_turn();

  TunerOptions options_;
  std::vector<DeviceKind> kinds_;
  Tuner tuner_;                           // of the present turn
  std::optional<Efficiency> efficiency_;  // none: throughput decides
  std::optional<std::size_t> turn_;       // kind whose turn it is; none: all kinds together
  std::vector<Configuration> present_;
  int began_with_ = 0;  // learners at the start of the present turn
  int turns_left_;
  bool earlier_turns_were_quiet_ = true;
  bool rests_ = false;         // whether every kind has had its turn
  bool turn_is_over_ = false;  // whether the next turn begins as soon as the last resize has worked
};

}  // namespace arbalest::autotuner
