// Changes of a run between two rounds: another number of learners, another scheme of synchronization.
#pragma once

#include <memory>
#include <string>

#include "train/learners/learner_changes.h"
#include "train/live/live_run.h"

namespace arbalest::jobs {

class RoundChanges {
 public:
  // The run must outlive it. Call begin() once its session is open.
  explicit RoundChanges(LiveRun& run);

  // Begins to follow the job's changes: from its start, or from the state that a checkpoint has set.
  void begin();
  void go_on();
  // Ends what prepares learners beside the training, so that the session may be restored; go_on() must follow.
  void stop() { changes_.reset(); }

  // Adds what this process tells the others about changes.
  void add_to(Requests& requests);
  // Carries out the changes that are due before the next iteration, as the processes have decided.
  void carry_out();
  // Adds the results of the tasks that have ended since the last call.
  void account(const scheduler::Progress& progress);
  // Waits for all work, and adds its results. Throws Diverged if any process has found it.
  void drain();
  // The time until now was not spent on training, so the tuner does not count it.
  void skip_time();

 private:
  void set_changes(std::unique_ptr<LearnerChanges> changes);
  void observe(const scheduler::Progress& progress);
  void switch_synchronization();
  void change_learners();

  LiveRun& run_;
  std::unique_ptr<LearnerChanges> changes_;  // null: the number of learners stays
  std::string synchronization_;              // present scheme
  LiveRun::Clock::time_point round_start_;
  std::unique_ptr<engine::host::ProcessorClock> processor_;  // null: the processor time is not measured
};

}  // namespace arbalest::jobs
