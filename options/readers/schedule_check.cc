#include "options/readers/schedule_check.h"

#include <algorithm>
#include <utility>

#include "messages/text.h"
#include "options/divergence/divergence_reader.h"
#include "options/readers/learners_reader.h"

namespace arbalest::jobs {

namespace {

// Tracks where a run's iterations begin, in mini-batches, while its learners and schemes change.
class Iterations {
 public:
  Iterations(const JobOptions& options, std::int64_t batches_per_epoch)
      : switches_(options.switches),
        batches_per_epoch_(static_cast<double>(batches_per_epoch)),
        learners_(total(options.learners_per_device)),
        scheme_(&options.synchronization) {}

  // Carries out the switches up to mini-batch `batch`. A switch takes place where the first iteration begins at or
  // after its epoch.
  void advance(std::uint64_t batch) {
    while (switch_by(batch)) {
    }
  }
  // Carries out the switches up to the first iteration that begins at or after `epoch`, and returns its mini-batch. If
  // that is not before `end`, later switches are left.
  std::uint64_t advance_to(double epoch, std::uint64_t end) {
    for (;;) {
      const std::uint64_t at = start_of(epoch);
      if (at >= end || !switch_by(at)) return at;
    }
  }
  // From mini-batch `batch` on there are `learners` learners.
  void resize(std::uint64_t batch, int learners) {
    begin_ = batch;
    learners_ = learners;
  }

  // Indices of the switches that the next one followed before an iteration began.
  const std::vector<std::size_t>& overtaken() const { return overtaken_; }
  // Index of the first switch that has not taken place.
  std::size_t next_switch() const { return next_; }
  std::uint64_t begin() const { return begin_; }
  int learners() const { return learners_; }
  std::uint64_t batches() const {
    return static_cast<std::uint64_t>(learners_) * static_cast<std::uint64_t>(scheme_->steps_per_iteration());
  }
  // Names an iteration in the words of its scheme: "round", "push" or "step"; and "round of 4 learners with period 5".
  const char* name() const {
    const sma::SynchronizationMode mode = scheme_->mode(learners_);
    return mode == sma::SynchronizationMode::kServer   ? "push"
           : mode == sma::SynchronizationMode::kShared ? "step"
                                                       : "round";
  }
  // Names the field by which an iteration is long.
  const char* length_field() const {
    return scheme_->mode(learners_) == sma::SynchronizationMode::kServer ? "push_every" : "period";
  }
  std::string description() const {
    const std::string learners = counted(learners_, "learner");
    const int steps = scheme_->steps_per_iteration();
    switch (scheme_->mode(learners_)) {
      case sma::SynchronizationMode::kServer:
        return fmt::format("push of each of {} (push_every: {})", learners, steps);
      case sma::SynchronizationMode::kShared: return fmt::format("step of each of {}", learners);
      default: return fmt::format("round of {} with period {}", learners, steps);
    }
  }

 private:
  // Carries out the next switch if it is due at or before mini-batch `batch`. Returns whether it was.
  bool switch_by(std::uint64_t batch) {
    if (next_ == switches_.size()) return false;
    const std::uint64_t at = start_of(switches_[next_].at_epoch);
    if (at > batch) return false;
    if (last_switch_ == at) overtaken_.push_back(next_ - 1);
    last_switch_ = at;
    begin_ = at;
    scheme_ = &switches_[next_].to;
    const std::vector<int>& learners = switches_[next_].learners_per_device;
    if (!learners.empty()) learners_ = total(learners);
    ++next_;
    return true;
  }

  // Returns the value that Scheduler::progress() has after `batch` mini-batches.
  double epoch_of(std::uint64_t batch) const { return static_cast<double>(batch) / batches_per_epoch_; }

  std::uint64_t start_of(double epoch) const {
    const double left = epoch * batches_per_epoch_ - static_cast<double>(begin_);
    std::uint64_t iterations = left > 0.0 ? static_cast<std::uint64_t>(left / static_cast<double>(batches())) : 0;
    while (epoch_of(begin_ + iterations * batches()) < epoch) ++iterations;
    return begin_ + iterations * batches();
  }

  const std::vector<SynchronizationSwitch>& switches_;
  double batches_per_epoch_;
  std::size_t next_ = 0;                      // index in switches_
  std::optional<std::uint64_t> last_switch_;  // mini-batch of the switch before it
  std::vector<std::size_t> overtaken_;
  std::uint64_t begin_ = 0;  // an iteration begins here, and all following iterations have one length
  int learners_;
  const sma::Options* scheme_;
};

bool changes_iteration(const JobOptions& options) {
  return std::ranges::any_of(options.switches, [&](const SynchronizationSwitch& each) {
    return each.to.steps_per_iteration() != options.synchronization.steps_per_iteration();
  });
}

// The mini-batch in which a run of max_epochs should end.
std::uint64_t end_of_run(const JobOptions& options, std::int64_t batches) {
  return static_cast<std::uint64_t>(batches) * static_cast<std::uint64_t>(options.training.max_epochs);
}

// Follows the run up to the iterations that it ends with.
Iterations last_iterations(const JobOptions& options, std::int64_t batches) {
  const std::uint64_t end = end_of_run(options, batches);
  Iterations iterations(options, batches);
  for (std::size_t i = 1; i < options.schedule.size(); ++i) {
    const LearnerStep& step = options.schedule[i];
    const std::uint64_t at = step.at_epoch ? iterations.advance_to(*step.at_epoch, end) : step.at_batch;
    if (at >= end) break;
    iterations.advance(at);
    iterations.resize(at, total(step.per_device));
  }
  iterations.advance(end - 1);
  return iterations;
}

// A run ends with a whole iteration. A warning if that makes it much longer than max_epochs.
std::string overlong_run(const JobOptions& options, std::int64_t batches) {
  constexpr std::uint64_t kMuch = 20;  // 1 / kMuch of the run
  if (batches <= 0 || options.tuned) return "";
  const std::uint64_t end = end_of_run(options, batches);
  const Iterations iterations = last_iterations(options, batches);
  const std::uint64_t round = iterations.batches();
  const std::uint64_t trained = iterations.begin() + (end - iterations.begin() + round - 1) / round * round;
  const bool can_be_shorter = std::cmp_greater(round, iterations.learners());
  if (!can_be_shorter || (trained - end) * kMuch < end) return "";
  return fmt::format(
      "training.max_epochs: the run ends after a whole {}, which has {} of the {} mini-batches of an epoch: it trains "
      "{:.2f} epochs instead of {}; lower {}, or choose max_epochs so that the last {} ends with an epoch",
      iterations.description(), round, batches, static_cast<double>(trained) / static_cast<double>(batches),
      options.training.max_epochs, iterations.length_field(), iterations.name());
}

// Names what has no effect if no round reaches the switch, in a warning that begins with the place of the switch.
const char* without_effect(const SynchronizationSwitch& of) { return of.ends_warm_start ? "async_sgd" : "it"; }

}  // namespace

void check_steps(const JobOptions& options, std::optional<std::int64_t> batches, dataflow::FieldIssues& issues) {
  if (options.schedule.empty() || options.schedule.front().at_epoch) return;  // at_epoch waits for the next iteration
  if (!batches && changes_iteration(options)) return;
  // If all iterations have the same length, the positions of the switches do not matter.
  Iterations iterations(options, batches.value_or(1));
  for (std::size_t i = 1; i < options.schedule.size(); ++i) {
    const std::uint64_t at = options.schedule[i].at_batch;
    if (batches) iterations.advance(at);
    const std::uint64_t round = iterations.batches();
    const std::uint64_t too_late = (at - iterations.begin()) % round;
    if (too_late != 0) {
      const std::uint64_t earlier = at - too_late;
      issues.add(fmt::format("learners.per_device.schedule.step[{}].at_batch", i),
                 fmt::format("learners change between one {} and the next, and from mini-batch {} on each {} has {} "
                             "mini-batches: {} lies within one; did you mean {}{}?",
                             iterations.name(), iterations.begin(), iterations.description(), round, at,
                             earlier == iterations.begin() ? "" : fmt::format("{} or ", earlier), earlier + round));
    }
    iterations.resize(at, total(options.schedule[i].per_device));
  }
}

std::vector<std::string> unreached_switches(const JobOptions& options, std::int64_t batches) {
  if (options.switches.empty() || batches <= 0 || options.tuned) return {};
  const Iterations iterations = last_iterations(options, batches);
  std::vector<std::string> warnings;
  for (const std::size_t lost : iterations.overtaken()) {
    const SynchronizationSwitch& overtaken = options.switches[lost];
    const SynchronizationSwitch& next = options.switches[lost + 1];
    // The next switch keeps the number of learners unless it names one.
    const bool changes_learners = !overtaken.learners_per_device.empty() && next.learners_per_device.empty();
    warnings.push_back(fmt::format(
        "{}: no round begins between epoch {} and epoch {}, where {} follows: {} has no effect", overtaken.place,
        overtaken.at_epoch, next.at_epoch, next.place, changes_learners ? "its scheme" : without_effect(overtaken)));
  }
  const std::size_t unreached = iterations.next_switch();
  if (unreached == options.switches.size()) return warnings;
  const SynchronizationSwitch& first = options.switches[unreached];
  warnings.push_back(fmt::format(
      "{}: no {} begins between epoch {} and the end of the run ({}), as a {} has {} of the {} mini-batches of an "
      "epoch: {} {} no effect",
      first.place, iterations.name(), first.at_epoch, counted(options.training.max_epochs, "epoch"),
      iterations.description(), iterations.batches(), batches, without_effect(first),
      unreached + 1 == options.switches.size() ? "has" : "and what follows it have"));
  return warnings;
}

std::vector<std::string> size_warnings(const JobOptions& options, std::int64_t batches) {
  std::vector<std::string> warnings = unreached_switches(options, batches);
  for (std::string text :
       {overlong_run(options, batches), unreached_steps(options, batches), spike_warning(options.training, batches)}) {
    if (!text.empty()) warnings.push_back(std::move(text));
  }
  return warnings;
}

}  // namespace arbalest::jobs
