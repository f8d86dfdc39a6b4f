#include "train/learners/tuned_changes.h"

#include <exception>
#include <numeric>
#include <utility>

#include "messages/failure.h"
#include "train/learners/processor_use.h"

namespace arbalest::jobs {

namespace {

std::vector<TunedDevice> bounded_devices(const JobOptions& job, const Session& session, std::string& warning) {
  std::vector<TunedDevice> devices = tuned_devices(job, session.learner_ceiling(), session.learners_at_once());
  warning = lower_ceilings(job, session.training_order().batches_per_epoch(), devices);
  return devices;
}

}  // namespace

TunedChanges::TunedChanges(const JobOptions& job, Session& session, const FirstGuess& guess,
                           const autotuner::QuietOptions& quiet)
    : session_(session),
      search_(job, bounded_devices(job, session, warning_), guess, session.training_order(), quiet),
      present_(job.learners_per_device),
      team_(job.team),
      preparation_(session) {
  begin();
}

// The session has at least the minimum of the bounds, so the last of the numbers tried needs no more memory.
void TunedChanges::begin() {
  for (;;) {
    LearnerChange first = search_.first();
    if (first.keeps(present_, team_) && search_.begins_silently()) return;
    try {
      if (!first.keeps(present_, team_)) session_.prepare(first.to, first.team);
      change_ = std::move(first);
      return;
    } catch (const std::exception& error) {
      if (!is_shortage(error)) throw;
      search_.first_does_not_fit(as_error(error).what());
    }
  }
}

// While learners are prepared, seconds do not count, because the preparation shares the training's cores. Gradients do.
// The present learners trained all of `progress`, because a change drains the streams first.
void TunedChanges::observe(const scheduler::Progress& progress, double seconds) {
  const int learners = std::accumulate(present_.begin(), present_.end(), 0);
  search_.learn(progress, learners, progress.examples);
  if (change_) return;
  if (std::exchange(releases_, false)) preparation_.release();
  autotuner::ProcessorUse processor;
  if (clock_ != nullptr && tuner().completes_window(progress.tasks, progress.examples, seconds)) {
    processor = take_use(*clock_);
  }
  if (auto change = search_.add(progress.tasks, progress.examples, seconds, processor)) decide(std::move(*change));
}

std::optional<LearnerChange> TunedChanges::due(std::uint64_t batch) {
  if (!change_ || !preparation_.is_done()) return std::nullopt;
  try {
    preparation_.take();
  } catch (const std::exception& error) {
    if (!is_shortage(error)) throw;
    decide(search_.out_of_memory(present_, change_->to, as_error(error).what()));
    return due(batch);
  }
  present_ = change_->to;
  if (change_->team > 0) team_ = change_->team;
  releases_ = change_->ends_search;
  return std::exchange(change_, std::nullopt);
}

void TunedChanges::decide(LearnerChange change) {
  change_ = std::move(change);
  if (!change_->keeps(present_, team_)) preparation_.start(change_->to, change_->team);
}

}  // namespace arbalest::jobs
