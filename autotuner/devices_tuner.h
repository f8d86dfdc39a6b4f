// The tuner of a run. Equal devices get one count; if devices differ, each kind of device gets its own.
//
// A round ends with its slowest device, so the effect of one device shows in the throughput of all. With several kinds,
// the first search therefore gives every device the same count. Then the kinds take turns: each searches around the
// present counts while the others stay as they are. The kind that searched last keeps watching; if it changes its
// count, the others get another turn. If an earlier search has ended with different counts per kind, the turns begin at
// once. A count that did not fit in memory in a kind's turn is not tried in its later turns. A count that did not fit
// on all devices together may be tried again, because it may fit on one kind alone.
//
// Devices of one kind that take teams are tuned to a size of teams, too. A search for the number of learners keeps the
// size, so it tries multiples of it. After it a search for the size follows (team_search.h), of at most 6 probes; and
// if that has found another size, one more search for the number around what was found, of at most probe_limit().
//
// tuner.h describes who calls what; a run with one device uses this class in the same way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "autotuner/team_search.h"
#include "autotuner/tuner.h"

namespace arbalest::autotuner {

// Devices of the same model, with the same number of cores.
struct DeviceKind {
  int devices = 1;
  std::vector<Configuration> space;  // space of each device, as for Tuner
};

// Makes the size of teams a part of the search.
struct TeamOptions {
  int most_at_once = 1;  // TeamLimits::most_at_once
  int guess = 1;         // where the search begins; 1 if no number of learners can be divided into such teams
};

struct DevicesDecision {
  Decision step;                  // `done` and `reason` concern the devices whose turn it is
  std::vector<Configuration> to;  // by kind: the configuration for each of its devices
  bool done = false;              // whether all searches have ended
};

class DevicesTuner {
 public:
  // Throws std::invalid_argument as Tuner does, if there is no kind, or if no count is in the spaces of all kinds.
  // `guesses`: as for Tuner, one per kind, or empty. `extent`: for the first search, of all devices together. `teams`:
  // only if there is one kind; none: teams stay as they are.
  DevicesTuner(const TunerOptions& options, std::vector<DeviceKind> kinds, const std::vector<int>& guesses = {},
               Extent extent = Extent::kEverywhere, const std::optional<TeamOptions>& teams = std::nullopt);

  // By kind: the configuration to run now; before the first decision, the configuration that the run begins with.
  const std::vector<Configuration>& present() const noexcept { return present_; }

  std::optional<DevicesDecision> add(std::int64_t tasks, std::int64_t examples, double seconds,
                                     const ProcessorUse& processor = {});
  // Whether add() with the same numbers will complete a window.
  bool completes_window(std::int64_t tasks, std::int64_t examples, double seconds) const {
    return team_search_ ? team_search_->completes_window(tasks, examples, seconds)
                        : tuner_.completes_window(tasks, examples, seconds);
  }
  // As Tuner::out_of_memory(), for the latest resize.
  DevicesDecision out_of_memory();
  // As Tuner::set_efficiency(), for all devices and kinds together.
  void set_efficiency(const Efficiency& efficiency);

  bool searching() const { return turns_left_ > 0 || turn_is_over_ || team_turn_lasts() || tuner_.searching(); }
  // Whether the machine was quiet in all turns.
  bool is_quiet() const { return earlier_turns_were_quiet_ && tuner_.quiet().is_quiet(); }
  // The tuner of the present or last turn, of numbers of learners. `arbalest tune` prints its measurements.
  const Tuner& tuner() const noexcept { return tuner_; }
  // By kind: the configurations while the devices whose turn it is have `learners`, which must be in their space.
  std::vector<Configuration> beside_others(int learners) const;

 private:
  DevicesDecision carry(const Decision& step);
  void take_next_turn();
  // Whether a search for the size of teams follows the tuner's choice.
  bool needs_team_search(const Decision& step);
  DevicesDecision carry_teams(const Decision& step);
  void end_team_search();
  // Whether a search for the size of teams is not over, or another one for the number of learners follows it.
  bool team_turn_lasts() const { return team_search_ && (!team_search_->has_ended() || team_search_->has_changed()); }

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
  std::optional<TeamOptions> teams_;
  std::vector<Configuration> without_teams_;  // the space of the one kind
  std::optional<TeamSearch> team_search_;     // its turn is next or under way, or its last resize may not have worked
  bool follows_teams_ = false;                // whether the present turn follows a search that changed the teams
};

}  // namespace arbalest::autotuner
