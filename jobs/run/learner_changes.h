// Numbers of learners that change while a job trains: as the auto-tuner decides, or as a schedule says.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/fleet_tuner.h"
#include "jobs/options/job_options.h"
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

  // `progress` ended in the last `seconds`, none of which went to anything but training.
  virtual void observe(const scheduler::Progress& progress, double seconds) = 0;
  // What to change before the round that begins at mini-batch `batch`; its learners are prepared. The same number as
  // before: nothing, but its reason is worth telling. Throws what preparing them threw.
  virtual std::optional<LearnerChange> due(std::uint64_t batch) = 0;
};

// Of a job with bounds, a schedule, or (null) neither.
std::unique_ptr<LearnerChanges> make_learner_changes(const JobOptions& job, Session& session);

}  // namespace arbalest::jobs
