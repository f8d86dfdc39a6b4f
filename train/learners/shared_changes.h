// Changes of the number of learners that the auto-tuner decides in a run of several processes.
//
// The tuner is on rank 0 and searches over the devices of all processes. It is fed with what rank 0 measures: a round
// ends with its slowest process, so rank 0's seconds are those of all. Processes talk beside the rounds, by the flags
// that all of them give after each iteration and get two iterations later (Agreement):
//   1. The tuner has decided: rank 0 gives `has_change`.
//   2. All get that at the same iteration. Rank 0 broadcasts the numbers, and every process begins to prepare its own
//      learners beside the training. A process gives `is_prepared` as soon as it has them.
//   3. All learn at the same iteration that all are prepared, and change there. If the memory of any process did not
//      suffice, none changes; the tuner never tries such a number again, and decides anew.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "engine/process/world.h"
#include "train/learners/devices_search.h"
#include "train/learners/learner_changes.h"
#include "train/learners/learner_preparation.h"
#include "train/session/session.h"

namespace arbalest::jobs {

class SharedChanges final : public LearnerChanges {
 public:
  // For a job with bounds. `guess`: for the devices of this process; if any process has none, the search begins with
  // the usual number. If the first number does not fit into the memory of all processes, it begins at a lower one. A
  // call of World's operations.
  SharedChanges(const JobOptions& job, Session& session, engine::process::World& world,
                const std::optional<FirstGuess>& guess);

  void observe(const scheduler::Progress& progress, double seconds) override;
  void add_to(Requests& requests) override;
  // A call of World's operations, like the flags.
  void follow(const Requests& decided) override;
  std::optional<LearnerChange> due(std::uint64_t batch) override;
  std::string warning() const override { return warning_; }
  void settle() override { preparation_.wait(); }

 private:
  void make_search(const JobOptions& job, const std::optional<FirstGuess>& guess);
  void begin();
  // Gives all processes the change that rank 0 has chosen.
  void publish();
  void give_up();
  std::vector<int> own_part(const std::vector<int>& all) const;

  Session& session_;
  engine::process::World& world_;
  std::size_t own_devices_;
  std::size_t first_device_ = 0;  // of this process among those of all
  std::string warning_;
  std::optional<DevicesSearch> search_;  // on rank 0
  std::vector<int> present_;             // by device of all processes
  int team_;                             // present size of teams, if it is tuned
  std::optional<LearnerChange> chosen_;  // on rank 0: decided, but not told to the others
  std::optional<LearnerChange> told_;    // being prepared; the reason is on rank 0 only
  bool is_due_ = false;                  // whether all are prepared for it
  std::exception_ptr shortage_;          // why this process could not prepare it; null: nothing has failed
  bool releases_ = false;                // whether the search has ended and idle learners still exist
  LearnerPreparation preparation_;       // it uses the session, so it must end first
};

}  // namespace arbalest::jobs
