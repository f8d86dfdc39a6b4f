// Changes that the auto-tuner decides in a run of one process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/learners/devices_search.h"
#include "train/learners/learner_changes.h"
#include "train/learners/learner_preparation.h"
#include "train/session/session.h"

namespace arbalest::jobs {

// The tuner is fed with the run's progress, and learners are prepared beside the training.
class TunedChanges final : public LearnerChanges {
 public:
  // For a job with bounds. If the first number does not fit into memory, the search begins at a lower one. `quiet`: for
  // how long the search waits for a quiet machine.
  TunedChanges(const JobOptions& job, Session& session, const FirstGuess& guess,
               const autotuner::QuietOptions& quiet = {});

  void observe(const scheduler::Progress& progress, double seconds) override;
  void measure_with(engine::host::ProcessorClock* clock) override { clock_ = clock; }
  std::optional<LearnerChange> due(std::uint64_t batch) override;
  std::string warning() const override { return warning_; }
  void settle() override { preparation_.wait(); }

  const autotuner::DevicesTuner& tuner() const noexcept { return search_.tuner(); }
  // Whether the search has ended and due() has returned its choice.
  bool is_settled() const noexcept { return !tuner().searching() && !change_; }
  // DevicesSearch describes these.
  const std::vector<autotuner::Configuration>& space() const { return search_.space(); }
  DeviceConfigurations measured_with(const autotuner::Point& point) const { return search_.measured_with(point); }
  std::vector<DeviceConfigurations> equal_counts() const { return search_.equal_counts(); }
  const autotuner::Efficiency& efficiency() const noexcept { return search_.efficiency(); }
  DeviceConfigurations present() const { return search_.present(); }

 private:
  void begin();
  void decide(LearnerChange change);

  Session& session_;
  std::string warning_;
  DevicesSearch search_;
  engine::host::ProcessorClock* clock_ = nullptr;  // null: the processor time is not measured
  std::vector<int> present_;                       // by device
  int team_;                                       // present size of teams, if it is tuned
  std::optional<LearnerChange> change_;            // the decided change, whose learners are being prepared
  bool releases_ = false;                          // whether the search has ended and idle learners still exist
  LearnerPreparation preparation_;                 // it uses the session, so it must end first
};

}  // namespace arbalest::jobs
