// The auto-tuner's search over all devices of a run: it connects devices, measured progress and decisions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/devices_tuner.h"
#include "autotuner/noise_scale.h"
#include "dataflow/input/batches/batch_order.h"
#include "options/job_options.h"
#include "train/learners/failed_counts.h"
#include "train/learners/learner_changes.h"
#include "train/learners/tuned_devices.h"

namespace arbalest::jobs {

// The start of a search.
struct FirstGuess {
  std::vector<int> learners{};                                // by device; none: nothing is known
  autotuner::Extent extent = autotuner::Extent::kEverywhere;  // for the first search
  // A sentence to tell even if the run begins with that number anyway; "": nothing to tell.
  std::string reason{};
  int team = 1;  // the size of teams, if it is tuned
};

// A guess without an earlier answer: the usual number of a CPU device, of the smallest one if there are several. It
// only decides where the search begins.
FirstGuess first_guess(const std::vector<TunedDevice>& devices);
FirstGuess first_guess(const JobOptions& job);

// The configuration of each device.
using DeviceConfigurations = std::vector<autotuner::Configuration>;
std::vector<int> learners_of(const DeviceConfigurations& devices);

class DevicesSearch {
 public:
  // `order`: of the training examples. Throws kInvalidJob if no number suits all devices.
  // `quiet`: for how long it waits for a quiet machine.
  DevicesSearch(const JobOptions& job, std::vector<TunedDevice> devices, const FirstGuess& guess,
                const dataflow::ShuffledOrder& order, const autotuner::QuietOptions& quiet = {});

  // The number of learners that the run begins with. `reason`: of the guess, or of the last first_does_not_fit().
  LearnerChange first() const;
  // Whether the first number needs no word if the run has it already.
  bool begins_silently() const noexcept { return reason_.empty(); }
  // The search begins at half the number, and never tries the number again or a larger one. `cause`: the error.
  void first_does_not_fit(const std::string& cause);

  // Adds gradients that `learners` have measured while all learners trained `examples`. Only GOODPUT needs them.
  void learn(const scheduler::Progress& measured, int learners, std::int64_t examples);
  // As DevicesTuner::add(), with the tasks of all devices.
  std::optional<LearnerChange> add(std::int64_t tasks, std::int64_t examples, double seconds,
                                   const autotuner::ProcessorUse& processor = {});
  // As DevicesTuner::out_of_memory(). `present` learners train, and `failed` did not fit, because of `cause`.
  LearnerChange out_of_memory(const std::vector<int>& present, const std::vector<int>& failed,
                              const std::string& cause);

  const autotuner::DevicesTuner& tuner() const noexcept { return tuner_; }
  // Numbers that the search chooses among; with several kinds of devices, those of the first kind.
  const std::vector<autotuner::Configuration>& space() const { return kinds_.front().described.space; }
  // The configurations that ran when a point of tuner().tuner().curve() was measured.
  DeviceConfigurations measured_with(const autotuner::Point& point) const;
  // Every number within the bounds, equal on all devices, ascending, including those that leave cores idle. Numbers for
  // which there was no memory are left out.
  std::vector<DeviceConfigurations> equal_counts() const;
  // The efficiency of a round, as far as known; unknown if throughput decides.
  const autotuner::Efficiency& efficiency() const noexcept { return efficiency_; }
  // The choice of the search, or what it is trying.
  DeviceConfigurations present() const { return by_device(tuner_.present()); }

 private:
  autotuner::DevicesTuner make_tuner(const FirstGuess& guess) const;
  // By TunedDevice; 0 also if there are several kinds of devices.
  int learners_at_once() const;
  LearnerChange change_to(const std::vector<autotuner::Configuration>& by_kind, std::string reason,
                          const std::optional<autotuner::Evidence>& evidence) const;
  DeviceConfigurations by_device(const std::vector<autotuner::Configuration>& by_kind) const;

  std::vector<TunedDevice> devices_;
  LearnerBounds bounds_;
  std::vector<TunedKind> kinds_;
  autotuner::QuietOptions quiet_;
  autotuner::DevicesTuner tuner_;
  std::string reason_;
  FailedCounts lost_;
  std::optional<autotuner::NoiseScale> noise_scale_;  // none if throughput decides
  autotuner::Efficiency efficiency_;
  double mini_batch_;                 // examples
  std::int64_t unseen_examples_ = 0;  // since the last measured gradients
};

}  // namespace arbalest::jobs
