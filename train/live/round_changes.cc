#include "train/live/round_changes.h"

#include <utility>

#include "train/learners/processor_use.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

RoundChanges::RoundChanges(LiveRun& run) : run_(run), synchronization_(sma::name_of(run.job.synchronization.scheme)) {}

void RoundChanges::begin() {
  set_changes(make_learner_changes(run_.job, *run_.session, run_.context.learner_cache, run_.world));
}

void RoundChanges::set_changes(std::unique_ptr<LearnerChanges> changes) {
  changes_ = std::move(changes);
  // Processes that share cores are no disturbance of each other, but cannot tell themselves from others.
  if (changes_ && run_.job.tuned && run_.context.measures_processor_time && run_.world.size() == 1) {
    processor_ = make_processor_clock(run_.job);
    changes_->measure_with(processor_.get());
  }
  if (changes_ && !changes_->warning().empty()) run_.job.warnings.push_back(changes_->warning());
}

void RoundChanges::go_on() {
  const std::size_t switches = run_.state.switches_done;
  const sma::Options& present = switches > 0 ? run_.job.switches[switches - 1].to : run_.job.synchronization;
  synchronization_ = sma::name_of(present.scheme);
  set_changes(continue_learner_changes(run_.job, *run_.session, run_.state, run_.world));
}

void RoundChanges::add_to(Requests& requests) {
  if (changes_) changes_->add_to(requests);
}

void RoundChanges::carry_out() {
  switch_synchronization();
  change_learners();
}

void RoundChanges::account(const scheduler::Progress& progress) {
  run_.add(progress);
  observe(progress);
}

void RoundChanges::skip_time() {
  round_start_ = run_.context.now();
  if (processor_) processor_->restart();
}

void RoundChanges::drain() { observe(run_.drain()); }

void RoundChanges::observe(const scheduler::Progress& progress) {
  const LiveRun::Clock::time_point now = run_.context.now();
  if (changes_) changes_->observe(progress, std::chrono::duration<double>(now - round_start_).count());
  round_start_ = now;
}

void RoundChanges::change_learners() {
  if (!changes_) return;
  changes_->follow(run_.decided);
  scheduler::Scheduler& scheduler = run_.session->scheduler();
  const std::uint64_t batch = scheduler.batches();
  const auto change = changes_->due(batch);
  if (!change) return;
  run_.state.learner_steps_done = changes_->steps_done();
  const ResizeRow row{.batch = batch,
                      .epoch = scheduler.progress(),
                      .elapsed_seconds = run_.seconds(),
                      .from = run_.summary.learners_per_device,
                      .to = join(run_.world, change->to),
                      .from_team = run_.state.team,
                      .to_team = change->team > 0 ? change->team : run_.state.team,
                      .reason = change->reason,
                      .evidence = change->evidence};
  if (row.changes()) {
    run_.drain();
    if (row.to != row.from) {
      run_.session->resize(change->to, change->team);
    } else {
      run_.session->change_teams(change->team);
    }
    run_.add_learner_step(change->to);
    run_.state.team = row.to_team;
    skip_time();
  }
  run_.notify(&RunObserver::on_resize, row);
}

void RoundChanges::switch_synchronization() {
  const JobOptions& job = run_.job;
  scheduler::Scheduler& scheduler = run_.session->scheduler();
  std::size_t& done = run_.state.switches_done;
  const std::size_t first = done;
  for (; done < job.switches.size() && scheduler.progress() >= job.switches[done].at_epoch; ++done) {
    if (done != first) ++run_.state.unused_switches;  // the one before it
    const SynchronizationSwitch& to = job.switches[done];
    SwitchRow row{.batch = scheduler.batches(),
                  .epoch = scheduler.progress(),
                  .elapsed_seconds = run_.seconds(),
                  .from = synchronization_,
                  .to = std::string(sma::name_of(to.to.scheme)),
                  .learners_per_device = {}};
    run_.drain();
    if (changes_) changes_->settle();
    run_.session->switch_to(to);
    synchronization_ = row.to;
    if (!to.learners_per_device.empty()) run_.set_learners(to.learners_per_device);
    row.learners_per_device = run_.summary.learners_per_device;
    skip_time();
    run_.notify(&RunObserver::on_switch, row);
  }
}

}  // namespace arbalest::jobs
