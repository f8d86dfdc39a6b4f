// Finds the number of learners per device with the highest throughput or goodput while a run trains, and adapts when
// that number changes. The tuner is a pure state machine: it owns no clock, no thread and no device, so the same calls
// give the same decisions.
//
// Who calls what (train/Trainer):
//   1. Before the run: give the constructor the space, which follows from the job's bounds, the memory estimate's
//      largest count and the batches of an epoch. The run begins with first(), or is refused if that does not fit.
//   2. After every scheduler.advance() and drain() of training: call add() with the Progress they returned and the
//      seconds they took. The seconds of evaluations, checkpoints and resizes are left out. If completes_window() says
//      so, add the processor time of the process since its last reading, so that windows that other programs have
//      disturbed are known (quiet_windows.h).
//   3. If add() returns a decision: log it. Unless its action is kKeep, resize at the next averaging point to
//      decision.to. A resize that works need not be reported. Windows count again after a settling time.
//   4. If a resize runs out of memory: call out_of_memory(), and carry out and log its decision instead. That decision
//      goes back to a count that has trained before.
//   5. For goodput: call set_efficiency() whenever the run's gradients give a new estimate.
//   6. With several processes rank 0 does all this and broadcasts the decisions.
// A resize that worked becomes a step of the recorded schedule, which a run can follow without a Tuner.
//
// A search tries octaves and then counts between them (search.h), each for as many windows as the comparison needs. The
// first search tries all octaves that could be the best, wherever it begins, unless it begins at the choice of an
// earlier search. It ends with a choice. Then the tuner watches, and searches again around the present count:
//   - when throughput has moved and stays moved (watch.h). A move by more than a third upwards or a quarter downwards
//     counts at once; a smaller move only 300 windows after the last search, because other work on the machine moves
//     throughput a little all the time and searches cost throughput.
//   - after 500 windows, then 1,000 and so on up to 4,000, because a better count elsewhere gives no sign.
//   - after 200 to 400 windows at the count that was chosen before, if that was faster then: the load that slowed it
//     down may be gone.
//   - when the noise scale has moved (Efficiency::has_moved_to) and, with the rates of the last search, another count
//     is better by more than the hysteresis, or an unmeasured count may be. These rates need no new probe.
// A search repeats disturbed windows. While the tuner watches, it passes over disturbed windows up to as many in a row:
// what lasts longer is a new state of the machine, to which the run adapts.
// After a search that changes nothing the next one waits longer (up to 800 windows). Searches of the last three kinds
// wait until there was no more than one resize per 100 windows, so that noise and drift do not lead to oscillation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotuner/curve.h"
#include "autotuner/decision.h"
#include "autotuner/quiet_windows.h"
#include "autotuner/search.h"
#include "autotuner/throughput.h"
#include "autotuner/watch.h"

namespace arbalest::autotuner {

struct TunerOptions {
  WindowOptions window;
  SearchOptions search;
  QuietOptions quiet;
  int devices = 1;            // number of devices that change together; `learners` is per device
  int other_learners = 0;     // learners of the other devices
  int fewest_windows = 5;     // fewest windows of a probe; the first probe takes nine, to learn the noise
  int most_windows = 40;      // most windows of a probe, however noisy
  double precision = 0.0125;  // relative standard error at which a probe is exact enough
};

class Tuner {
 public:
  // Throws std::invalid_argument unless `space` is ascending in learners and not empty. `guess`: the search begins at
  // the nearest count of the space; without a guess at the second octave, 2 learners. `extent`: for the first search;
  // kAround if the guess is the choice of an earlier search of the same work.
  Tuner(const TunerOptions& options, std::vector<Configuration> space, std::optional<int> guess = std::nullopt,
        Extent extent = Extent::kEverywhere);

  // The configuration that the run begins with.
  const Configuration& first() const noexcept { return first_; }
  // The configuration that the run should have now.
  const Configuration& present() const noexcept { return present_; }

  // Reports that `tasks` (mini-batches) with `examples` ended in the last `seconds`, over all devices.
  // `processor`: the processor time since its last reading, or nothing.
  std::optional<Decision> add(std::int64_t tasks, std::int64_t examples, double seconds,
                              const ProcessorUse& processor = {});
  // Whether add() with the same numbers will complete a window.
  bool completes_window(std::int64_t tasks, std::int64_t examples, double seconds) const {
    return meter_.completes(tasks, examples, seconds);
  }
  // Reports that the latest resize ran out of memory. The failed count is never tried again; if the resize grew, nor is
  // any count above it. A resize to fewer learners can fail because a different thread count needs new learners, so old
  // and new ones coexist. Throws std::logic_error if the last decision was to keep.
  Decision out_of_memory();
  // Something else was measured between two calls of add(): windows count again after a settling time.
  void settle();
  // From now on counts are compared by goodput. If the efficiency is unknown, they are compared by throughput, and the
  // reasons say so. Before the first call throughput decides.
  void set_efficiency(const Efficiency& efficiency);

  // Whether a search is under way; otherwise present() is its choice.
  bool searching() const noexcept { return state_ != State::kWatching; }
  // Measurements of the present or last search.
  const Curve& curve() const noexcept { return curve_; }
  const Objective& objective() const noexcept { return options_.search.objective; }
  int probes() const noexcept { return probes_; }
  int measured_windows() const noexcept { return measured_windows_; }
  // What the present or last search left out, and whether the machine was quiet.
  const QuietWindows& quiet() const noexcept { return quiet_; }
  // Counts that may still be tried.
  const std::vector<Configuration>& space() const noexcept { return space_; }

 private:
  enum class State { kProbing, kReturning, kWatching };

  std::optional<Decision> probe(const Window& window);
  bool passes_over(const Window& window);
  std::optional<Decision> watch(double rate);
  double goodput(const Point& point) const { return objective().goodput(point.configuration, point.rate); }
  bool may_look() const;
  int patience_with(double move) const;
  bool is_enough() const;
  Point measured() const;
  Decision next();
  Decision finish();
  bool efficiency_asks_to_search() const;
  Decision follow_throughput(double moved);
  Decision follow_efficiency();
  Decision look_around();
  Decision look_back();
  void begin_search(int windows);
  void plan_next_search(bool changed);
  Decision go(Configuration to, bool done, std::string reason);
  Evidence evidence() const;
  std::optional<Probe> next_worth_trying() const;

  TunerOptions options_;
  std::vector<Configuration> space_;    // without counts that did not fit
  std::vector<Configuration> octaves_;  // octaves of the whole space, through the guess
  Configuration first_;
  Configuration present_;
  Configuration last_good_;  // the configuration before present_, which has trained
  Action last_action_ = Action::kKeep;
  State state_ = State::kProbing;
  WindowMeter meter_;

  // The search under way, or the last one.
  Extent extent_;
  Curve curve_;
  NoiseEstimate noise_;
  std::vector<double> rates_;    // windows of the present probe
  std::vector<Window> windows_;  // likewise, with their processor time
  QuietWindows quiet_;
  std::optional<Point> incumbent_;   // the previous choice; none in the first search
  double incumbent_baseline_ = 0.0;  // its rate when it was chosen
  bool looking_back_ = false;        // whether the present probe tries the remembered count
  int probes_ = 0;
  int measured_windows_ = 0;

  std::optional<Watch> watch_;       // set once there is a choice
  int disturbed_in_a_row_ = 0;       // windows that the watch has passed over
  Efficiency chosen_by_;             // the efficiency known at that choice
  bool more_to_try_ = false;         // whether another count was still worth a probe when the last search ended
  std::optional<Point> remembered_;  // an earlier choice that was faster than the present one
  int next_look_;                    // windows of watching until a search without cause
  int next_look_back_;
  int windows_since_choice_ = 0;  // since the first choice
  int resizes_since_choice_ = 0;
  int patience_;  // windows of watching before a search with cause
};

}  // namespace arbalest::autotuner
