// Changes of the number of learners while a job trains, decided by the auto-tuner or given by a schedule.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "autotuner/fleet_tuner.h"
#include "autotuner/noise_scale.h"
#include "jobs/checkpoint/run_state.h"
#include "jobs/options/job_options.h"
#include "jobs/run/learners/failed_counts.h"
#include "jobs/run/learners/learner_cache.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

// A new number of learners for each device, and the reason.
struct LearnerChange {
  std::vector<int> to;
  std::string reason;                           // one sentence
  std::optional<autotuner::Evidence> evidence;  // the auto-tuner's
};

// Source of changes. The Trainer asks it between rounds and carries out its answers with Session::resize.
class LearnerChanges {
 public:
  virtual ~LearnerChanges() = default;

  // Reports that `progress` ended in the last `seconds`, all of them spent on training. After the last change of a
  // search, the first call frees idle learners.
  virtual void observe(const scheduler::Progress& progress, double seconds) = 0;
  // Returns the change to make before the round that begins at mini-batch `batch`; its learners are prepared. A change
  // to the present number changes nothing, but its reason is worth telling. Throws what preparing the learners threw.
  virtual std::optional<LearnerChange> due(std::uint64_t batch) = 0;
  // The steps of the job's schedule that due() has returned or passed over, the start included; 0 without a schedule.
  virtual std::size_t steps_done() const { return 0; }
  // Waits until no learners are prepared or freed in the background, so that the pools may be used otherwise.
  virtual void settle() {}
};

// Tells people how the number of learners will change: "16 from epoch 6 on". "" if it stays.
std::string describe_changes(const JobOptions& job);

// Returns every number of learners within the bounds, for that device.
std::vector<autotuner::Configuration> all_counts_on(const engine::DeviceSpec& device, const autotuner::Bounds& bounds);
// Returns, for each of these devices, the numbers that it may be tuned to, ascending: those that suit its cores, or
// every number if no suitable number is common to all devices. Throws std::invalid_argument unless 1 <= min <= max.
std::vector<std::vector<autotuner::Configuration>> counts_on(std::span<const engine::DeviceSpec> devices,
                                                             const autotuner::Bounds& bounds);

// The start of a search.
struct FirstGuess {
  std::vector<int> learners{};                                // by device; none: nothing is known
  autotuner::Extent extent = autotuner::Extent::kEverywhere;  // for the first search
  // A sentence to tell even if the run begins with that number anyway; "": nothing to tell.
  std::string reason{};
};

// The configuration of each of the job's devices.
using DeviceConfigurations = std::vector<autotuner::Configuration>;
std::vector<int> learners_of(const DeviceConfigurations& devices);

// Changes that the auto-tuner decides. It is fed with the run's progress, and learners are prepared on a thread of
// their own.
class TunedChanges final : public LearnerChanges {
 public:
  // For a job with bounds. If the first number does not fit into memory, the search begins at a lower one.
  TunedChanges(const JobOptions& job, Session& session, const FirstGuess& guess);
  ~TunedChanges() override;

  void observe(const scheduler::Progress& progress, double seconds) override;
  std::optional<LearnerChange> due(std::uint64_t batch) override;
  void settle() override {
    if (preparation_.valid()) preparation_.wait();
  }

  const autotuner::FleetTuner& tuner() const noexcept { return tuner_; }
  // Whether the search has ended and due() has returned its choice.
  bool is_settled() const noexcept { return !tuner_.searching() && !change_; }
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
  // A group of equal devices, and their indices among the job's devices.
  struct Kind {
    autotuner::DeviceKind described;
    std::vector<autotuner::Configuration> every;  // every number within the bounds
    std::string model;                            // model of the GPU; "" for a CPU
    std::vector<std::size_t> devices;
  };
  static std::vector<Kind> find_kinds(const JobOptions& job, int ceiling);
  // `guess`: by device of the job, or empty.
  static autotuner::FleetTuner make_tuner(const std::vector<Kind>& kinds, const std::vector<int>& guess,
                                          autotuner::Extent extent);
  DeviceConfigurations by_device(const std::vector<autotuner::Configuration>& by_kind) const;
  bool is_prepared() const;
  void begin(const JobOptions& job, const FirstGuess& guess);
  void decide(const autotuner::FleetDecision& decision);
  void release();
  // Gives the tuner an estimate from the gradients of `progress`.
  void learn(const scheduler::Progress& progress);

  Session& session_;
  std::vector<Kind> kinds_;
  autotuner::FleetTuner tuner_;
  std::vector<int> present_;  // by device
  FailedCounts lost_;
  std::optional<LearnerChange> change_;               // the decided change, whose learners are being prepared
  bool releases_ = false;                             // whether the search has ended and idle learners still exist
  std::optional<autotuner::NoiseScale> noise_scale_;  // none if throughput decides
  autotuner::Efficiency efficiency_;
  double mini_batch_ = 1.0;           // examples
  std::int64_t unseen_examples_ = 0;  // since the last measured gradients
  std::future<void> preparation_;     // preparation of learners, or release of idle ones
};

// A guess without an earlier answer: the default number for a CPU, of the smallest device if there are several. It only
// decides where the search begins.
FirstGuess first_guess(const JobOptions& job);

// Makes the source of changes for a job with bounds or with a schedule; null for other jobs. With bounds, if `cache`
// (unless null) has the answer of an earlier search, the search begins there and stays around it. A problem with the
// cache's file becomes a warning of the job.
std::unique_ptr<LearnerChanges> make_learner_changes(JobOptions& job, Session& session, const LearnerCache* cache);

// Makes the source for a run that goes on from a checkpoint: a tuned job keeps the number that it has and searches
// around it, a schedule goes on after its last step that has begun.
std::unique_ptr<LearnerChanges> continue_learner_changes(const JobOptions& job, Session& session,
                                                         const RunState& state);

}  // namespace arbalest::jobs
