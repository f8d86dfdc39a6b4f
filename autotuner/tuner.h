// Finds the number of learners per device with the highest throughput, or goodput, while a run trains, and follows when
// it changes. A pure state machine: it owns no clock, no thread and no device, so the same calls give the same
// decisions.
//
// Who calls what (jobs/run/Trainer):
//   1. Before the run: the space, from the job's bounds, the memory forecast's largest count and the batches of an
//      epoch. The run begins with first(), or is refused if that does not fit.
//   2. After every scheduler.advance() and drain() of training: add() with the Progress they returned and the seconds
//      they took. Evaluations, checkpoints and resizes are left out: their seconds are nobody's throughput.
//   3. If add() returns a decision: log it, and unless it keeps, resize at the next averaging point to decision.to.
//      Nothing is to be reported when that has worked. Windows count again after a settling time.
//   4. If a resize runs out of memory: out_of_memory(), whose decision is carried out and logged
//      instead. That resize goes back to a count that has trained before.
//   5. For goodput: set_efficiency() with what the run's gradients say, as often as they say something new.
//   6. With several processes rank 0 does this, and broadcasts the decision.
// A resize that worked is worth a line in the recorded schedule, which a run can follow without a Tuner.
//
// A search tries octaves and then counts between them (search.h), each for as many windows as the comparison needs. The
// first looks at all octaves that could be the best, wherever it begins, unless that is the choice of an earlier one.
// It ends with the choice; then the tuner watches, and searches again around the present count
//   - when throughput has moved and stays moved (watch.h): by more than a third upwards or a quarter downwards at once,
//     by less only 300 windows after the last search, as other work on the machine moves it a little all the time and
//     searches cost throughput,
//   - after 500 windows, then 1,000 and so on up to 4,000, as a better count elsewhere gives no sign,
//   - after 200 to 400 windows at the count that was chosen before, if that was faster then: a load that has left it,
//   - when the noise scale has moved (Efficiency::has_moved_to) and, with the rates of the last search, another count
//   is
//     better by more than the hysteresis or one that was not measured may be; these rates need no new probe.
// A search that changes nothing makes the next one wait longer (up to 800 windows), and searches of the last three
// kinds wait until there was no more than one resize per 100 windows, so that noise and drift do not lead to
// oscillation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotuner/curve.h"
#include "autotuner/decision.h"
#include "autotuner/search.h"
#include "autotuner/throughput.h"
#include "autotuner/watch.h"

namespace arbalest::autotuner {

struct TunerOptions {
  WindowOptions window;
  SearchOptions search;
  int devices = 1;            // that change together; `learners` is of each
  int other_learners = 0;     // of devices that train beside them
  int fewest_windows = 5;     // of a probe; the first takes nine, to learn the noise
  int most_windows = 40;      // of a probe, however noisy
  double precision = 0.0125;  // relative standard error at which a probe is exact enough
};

class Tuner {
 public:
  // `space`: ascending in learners, not empty; throws std::invalid_argument otherwise. `guess`: a count to begin with,
  // the nearest of the space is taken; without one it is the second octave, 2 learners. `extent`: of the first search,
  // kAround if the guess is what an earlier search of the same work has chosen.
  Tuner(const TunerOptions& options, std::vector<Configuration> space, std::optional<int> guess = std::nullopt,
        Extent extent = Extent::kEverywhere);

  // What the run begins with.
  const Configuration& first() const noexcept { return first_; }
  // What it should be running with now.
  const Configuration& present() const noexcept { return present_; }

  // `tasks` (mini-batches) with `examples` ended in the last `seconds`, over all devices.
  std::optional<Decision> add(std::int64_t tasks, std::int64_t examples, double seconds);
  // The resize that was decided last did not find the memory. The count that failed is never tried again, nor any
  // above it if that was to grow; fewer learners fail where they are others, of more threads, for which there is no
  // memory beside the present ones. Throws std::logic_error if the last decision was to keep.
  Decision out_of_memory();
  // From now on counts are compared by goodput; with an efficiency that is not known by throughput, which the reasons
  // then say. Without any call throughput decides.
  void set_efficiency(const Efficiency& efficiency);

  // Whether a search is under way; otherwise present() is its choice.
  bool searching() const noexcept { return state_ != State::kWatching; }
  // What the present search, or the last, has measured.
  const Curve& curve() const noexcept { return curve_; }
  const Objective& objective() const noexcept { return options_.search.objective; }
  int probes() const noexcept { return probes_; }
  int measured_windows() const noexcept { return measured_windows_; }
  // What may still be tried.
  const std::vector<Configuration>& space() const noexcept { return space_; }

 private:
  enum class State { kProbing, kReturning, kWatching };

  void settle();
  std::optional<Decision> probe(double rate);
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
  std::vector<Configuration> space_;    // without what did not fit
  std::vector<Configuration> octaves_;  // of the whole space, through the guess
  Configuration first_;
  Configuration present_;
  Configuration last_good_;  // has trained before present_
  Action last_action_ = Action::kKeep;
  State state_ = State::kProbing;
  WindowMeter meter_;

  // The search under way, or the last one.
  Extent extent_;
  Curve curve_;
  NoiseEstimate noise_;
  std::vector<double> rates_;        // of the probe under way
  std::optional<Point> incumbent_;   // what was chosen before; none in the first search
  double incumbent_baseline_ = 0.0;  // its rate at that time
  bool looking_back_ = false;        // the probe under way is the remembered count
  int probes_ = 0;
  int measured_windows_ = 0;

  std::optional<Watch> watch_;       // once there is a choice
  Efficiency chosen_by_;             // what was known of it then
  bool more_to_try_ = false;         // the limit of probes ended the last search
  std::optional<Point> remembered_;  // was better than what runs now
  int next_look_;                    // windows of watching until a search without cause
  int next_look_back_;
  int windows_since_choice_ = 0;  // the first choice
  int resizes_since_choice_ = 0;
  int patience_;  // windows of watching before a search with cause
};

}  // namespace arbalest::autotuner
