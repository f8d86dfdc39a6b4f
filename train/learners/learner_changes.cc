#include "train/learners/learner_changes.h"

#include <algorithm>
#include <utility>

#include "messages/text.h"
#include "train/learners/shared_changes.h"
#include "train/learners/tuned_changes.h"

namespace arbalest::jobs {

std::string describe_changes(const JobOptions& job) {
  if (job.tuned)
    return job.tuned->objective == TuningObjective::kGoodput ? "searching the number of learners with the most goodput"
           : job.tunes_team ? "searching the fastest number of learners and size of teams"
                            : "searching the fastest number of learners";
  if (job.schedule.size() < 2) return "";
  const LearnerStep& last = job.schedule.back();
  return fmt::format("{} from {} on", fmt::join(last.per_device, ", "),
                     last.at_epoch ? fmt::format("epoch {:g}", *last.at_epoch)
                                   : fmt::format("mini-batch {}", grouped(static_cast<std::int64_t>(last.at_batch))));
}

namespace {

class ScheduledChanges final : public LearnerChanges {
 public:
  // `next`: the first step that has not begun.
  ScheduledChanges(std::vector<LearnerStep> schedule, Session& session, std::size_t next)
      : session_(session), schedule_(std::move(schedule)), next_(next) {}

  void observe(const scheduler::Progress& /*progress*/, double /*seconds*/) override {
    if (std::exchange(releases_, false)) session_.release_idle();  // on this thread, like the preparation
  }

  std::optional<LearnerChange> due(std::uint64_t batch) override {
    if (next_ == schedule_.size() || !is_due(schedule_[next_], batch)) return std::nullopt;
    // A round may be longer than the time between two steps.
    while (next_ + 1 < schedule_.size() && is_due(schedule_[next_ + 1], batch)) ++next_;
    const LearnerStep& step = schedule_[next_++];
    session_.prepare(step.per_device);
    releases_ = true;
    return LearnerChange{step.per_device, "the schedule says so", std::nullopt};
  }
  std::size_t steps_done() const override { return next_; }

 private:
  bool is_due(const LearnerStep& step, std::uint64_t batch) const {
    if (step.at_epoch) return session_.scheduler().progress() >= *step.at_epoch;
    // check_steps() ensures that an iteration begins there, unless the schedule has changed at a resumption.
    return batch >= step.at_batch;
  }

  Session& session_;
  std::vector<LearnerStep> schedule_;
  std::size_t next_;
  bool releases_ = false;  // whether idle learners are still allocated
};

// The answer of an earlier search; none if there is none.
std::optional<FirstGuess> remembered_guess(JobOptions& job, const LearnerCache* cache) {
  const auto learners = cache == nullptr ? std::nullopt : cache->find(job, job.warnings);
  if (!learners) return std::nullopt;
  return FirstGuess{*learners, autotuner::Extent::kAround,
                    fmt::format("the search for the fastest number of learners begins where `arbalest tune` has ended, "
                                "or at the nearest number that the job allows ({})",
                                cache->file_of(job).string())};
}

}  // namespace

std::unique_ptr<LearnerChanges> make_learner_changes(JobOptions& job, Session& session, const LearnerCache* cache,
                                                     engine::process::World& world) {
  if (job.tuned) {
    std::optional<FirstGuess> guess = remembered_guess(job, cache);
    if (world.size() == 1) return std::make_unique<TunedChanges>(job, session, guess ? *guess : first_guess(job));
    // `arbalest tune` has measured this process's devices without the others.
    if (guess) guess->extent = autotuner::Extent::kEverywhere;
    return std::make_unique<SharedChanges>(job, session, world, guess);
  }
  if (job.schedule.size() > 1) return std::make_unique<ScheduledChanges>(job.schedule, session, 1);
  return nullptr;
}

std::unique_ptr<LearnerChanges> continue_learner_changes(const JobOptions& job, Session& session, const RunState& state,
                                                         engine::process::World& world) {
  if (job.tuned) {
    JobOptions present = job;
    present.learners_per_device = state.learners_per_device;
    if (job.tunes_team) present.team = state.team;
    const FirstGuess guess{
        .learners = state.learners_per_device, .extent = autotuner::Extent::kAround, .team = present.team};
    if (world.size() == 1) return std::make_unique<TunedChanges>(present, session, guess);
    return std::make_unique<SharedChanges>(present, session, world, guess);
  }
  if (job.schedule.size() < 2) return nullptr;
  return std::make_unique<ScheduledChanges>(job.schedule, session, std::max<std::size_t>(state.learner_steps_done, 1));
}

}  // namespace arbalest::jobs
