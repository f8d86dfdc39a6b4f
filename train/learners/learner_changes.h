// Changes of the number of learners while a job trains, decided by the auto-tuner or given by a schedule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotuner/decision.h"
#include "checkpoint/run_state.h"
#include "engine/host/processor_time.h"
#include "engine/process/world.h"
#include "options/job_options.h"
#include "train/learners/learner_cache.h"
#include "train/processes/agreement.h"
#include "train/session/session.h"

namespace arbalest::jobs {

// A new number of learners for each device, and the reason.
struct LearnerChange {
  std::vector<int> to;
  std::string reason;                           // one sentence
  std::optional<autotuner::Evidence> evidence;  // the auto-tuner's
  bool ends_search = false;                     // the auto-tuner's
  int team = 0;                                 // the auto-tuner's: the new size of teams; 0: it stays

  // Whether nothing changes for these learners in teams of this size.
  bool keeps(const std::vector<int>& learners, int present_team) const {
    return to == learners && (team == 0 || team == present_team);
  }
};

// Source of changes. The Trainer asks it between rounds and carries out its answers with Session::resize or, if only
// the size of teams changes, with Session::change_teams.
class LearnerChanges {
 public:
  virtual ~LearnerChanges() = default;

  // Reports that `progress` ended in the last `seconds`, all of them spent on training. After the last change of a
  // search, the first call frees idle learners.
  virtual void observe(const scheduler::Progress& progress, double seconds) = 0;
  // From now on the processor time of windows is measured by `clock`, which must outlive this; its owner restarts it
  // when time was not spent on training. Without a clock every window counts.
  virtual void measure_with(engine::host::ProcessorClock* clock) { static_cast<void>(clock); }
  // Returns the change to make before the round that begins at mini-batch `batch`; its learners are prepared. A change
  // to the present number changes nothing, but its reason is worth telling. Throws what preparing the learners threw.
  virtual std::optional<LearnerChange> due(std::uint64_t batch) = 0;
  // The steps of the job's schedule that due() has returned or passed over, the start included; 0 without a schedule.
  virtual std::size_t steps_done() const { return 0; }
  // The processes of a run tell each other between rounds what they know (Agreement). These add what this process
  // tells, and get what all have told.
  virtual void add_to(Requests& requests) { static_cast<void>(requests); }
  virtual void follow(const Requests& decided) { static_cast<void>(decided); }
  // A warning about the numbers that a search may choose; "" if there is none.
  virtual std::string warning() const { return ""; }
  // Waits until no learners are prepared or freed in the background, so that the pools may be used otherwise.
  virtual void settle() {}
};

// Tells people how the number of learners will change: "16 from epoch 6 on". "" if it stays.
std::string describe_changes(const JobOptions& job);

// Makes the source of changes for a job with bounds or with a schedule; null for other jobs. With bounds, if `cache`
// (unless null) has the answer of an earlier search, the search begins there and, in a single process, stays around it.
// A problem with the cache's file becomes a warning of the job. A call of World's operations.
std::unique_ptr<LearnerChanges> make_learner_changes(JobOptions& job, Session& session, const LearnerCache* cache,
                                                     engine::process::World& world);

// Makes the source for a run that goes on from a checkpoint: a tuned job keeps the number that it has and searches
// around it, a schedule goes on after its last step that has begun. A call of World's operations.
std::unique_ptr<LearnerChanges> continue_learner_changes(const JobOptions& job, Session& session, const RunState& state,
                                                         engine::process::World& world);

}  // namespace arbalest::jobs
