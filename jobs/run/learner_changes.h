// Numbers of learners that change while a job trains: as the auto-tuner decides, or as a schedule says.
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
#include "jobs/options/job_options.h"
#include "jobs/run/learner_cache.h"
#include "jobs/run/lost_counts.h"
#include "jobs/run/session.h"

namespace arbalest::jobs {

// A number of learners of each device, and why.
struct LearnerChange {
  std::vector<int> to;
  std::string reason;                           // one sentence
  std::optional<autotuner::Evidence> evidence;  // of the auto-tuner
};

// Both are asked between rounds; who asks carries out what they answer with Session::resize.
class LearnerChanges {
 public:
  virtual ~LearnerChanges() = default;

  // `progress` ended in the last `seconds`, none of which went to anything but training. Once a change is the last one
  // for now, the first call behind it frees the learners that idle.
  virtual void observe(const scheduler::Progress& progress, double seconds) = 0;
  // What to change before the round that begins at mini-batch `batch`; its learners are prepared. The same number as
  // before: nothing, but its reason is worth telling. Throws what preparing them threw.
  virtual std::optional<LearnerChange> due(std::uint64_t batch) = 0;
  // Waits until nothing is prepared or freed beside the training, so that the pools may be used otherwise.
  virtual void settle() {}
};

// Every number of learners within the bounds, on that device.
std::vector<autotuner::Configuration> all_counts_on(const engine::DeviceSpec& device, const autotuner::Bounds& bounds);
// Of each of these devices the numbers that it may be tuned to, ascending: those that suit its cores, or, where none of
// them is one for all devices, every number. Throws std::invalid_argument unless 1 <= min <= max.
std::vector<std::vector<autotuner::Configuration>> counts_on(std::span<const engine::DeviceSpec> devices,
                                                             const autotuner::Bounds& bounds);

// Where a search begins.
struct FirstGuess {
  std::vector<int> learners{};                                // by device; none: nothing is known
  autotuner::Extent extent = autotuner::Extent::kEverywhere;  // of the first search
  std::string reason{};  // a sentence to be told even if the run begins with that number anyway; "": nothing to tell
};

// What each of the job's devices runs with.
using DeviceConfigurations = std::vector<autotuner::Configuration>;
std::vector<int> learners_of(const DeviceConfigurations& devices);

// By the auto-tuner, fed with what the run reports and preparing on a thread of its own what it decides.
class TunedChanges final : public LearnerChanges {
 public:
  // Of a job with bounds. Where the first number does not fit into memory after all, the search begins below it.
  TunedChanges(const JobOptions& job, Session& session, const FirstGuess& guess);
  ~TunedChanges() override;

  void observe(const scheduler::Progress& progress, double seconds) override;
  std::optional<LearnerChange> due(std::uint64_t batch) override;
  void settle() override {
    if (preparation_.valid()) preparation_.wait();
  }

  const autotuner::FleetTuner& tuner() const noexcept { return tuner_; }
  // Whether the search has ended, and its choice was answered by due().
  bool is_settled() const noexcept { return !tuner_.searching() && !change_; }
  // Numbers that it chooses among, of devices that are all alike; else of the first kind.
  const std::vector<autotuner::Configuration>& space() const { return kinds_.front().described.space; }
  // What ran when a point of tuner().tuner().curve() was measured.
  DeviceConfigurations measured_with(const autotuner::Point& point) const;
  // Every number within the bounds, also those that leave cores idle, alike on all devices, ascending; but for those
  // for which there was no memory.
  std::vector<DeviceConfigurations> equal_counts() const;
  // What is known of the efficiency of a round; nothing where throughput decides.
  const autotuner::Efficiency& efficiency() const noexcept { return efficiency_; }
  // What the search has chosen, or is looking at.
  DeviceConfigurations present() const { return by_device(tuner_.present()); }

 private:
  // Devices that are alike, and which of the job's devices they are.
  struct Kind {
    autotuner::DeviceKind described;
    std::vector<autotuner::Configuration> every;  // number within the bounds
    std::string model;                            // of a GPU
    std::vector<std::size_t> devices;
  };
  static std::vector<Kind> find_kinds(const JobOptions& job, int ceiling);
  // `guess`: by device of the job, or none.
  static autotuner::FleetTuner make_tuner(const std::vector<Kind>& kinds, const std::vector<int>& guess,
                                          autotuner::Extent extent);
  DeviceConfigurations by_device(const std::vector<autotuner::Configuration>& by_kind) const;
  bool is_prepared() const;
  void begin(const JobOptions& job, const FirstGuess& guess);
  void decide(const autotuner::FleetDecision& decision);
  void release();
  // Tells the tuner what the gradients of `progress` say.
  void learn(const scheduler::Progress& progress);

  Session& session_;
  std::vector<Kind> kinds_;
  autotuner::FleetTuner tuner_;
  std::vector<int> present_;  // by device
  LostCounts lost_;
  std::optional<LearnerChange> change_;               // decided, and being prepared
  bool releases_ = false;                             // the search has ended, and idle learners are still there
  std::optional<autotuner::NoiseScale> noise_scale_;  // none where throughput decides
  autotuner::Efficiency efficiency_;
  double mini_batch_ = 1.0;           // examples
  std::int64_t unseen_examples_ = 0;  // since the last gradients
  std::future<void> preparation_;     // or the release of idle learners
};

// Without an answer of an earlier search: as many as a CPU would train by default, of the smallest device of several.
// That says only where the search begins.
FirstGuess first_guess(const JobOptions& job);

// Of a job with bounds, a schedule, or (null) neither. With bounds the search begins where `cache` (unless null) says
// that an earlier one has ended, and goes around that; what is wrong with its file becomes a warning of the job.
std::unique_ptr<LearnerChanges> make_learner_changes(JobOptions& job, Session& session, const LearnerCache* cache);

}  // namespace arbalest::jobs
