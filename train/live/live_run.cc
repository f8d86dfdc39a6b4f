#include "train/live/live_run.h"

#include <numeric>
#include <utility>

#include "train/live/resumption.h"
#include "train/live/run_start.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

LiveRun::LiveRun(const JobOptions& job_options, const RunContext& run_context)
    : job(job_options),
      context(run_context),
      world(run_context.world == nullptr ? alone : *run_context.world),
      start(run_context.now()),
      scores(job_options) {
  devices_of_rank_ = join(world, {static_cast<int>(job.devices.size())});
  summary.job = job.name;
  summary.metrics = job.graph->metrics();
  summary.precision = job.training.precision;
  summary.seed = job.training.seed;
  summary.accuracy_set = scores.accuracy_set();
  if (context.output_directory.empty()) {  // there is no place for checkpoints
    job.checkpoint.keep_last = 0;
    job.training.divergence.rolls_back = false;
  }
  add_learner_step(job.learners_per_device);
  if (job.tunes_team) state.team = job.team;
  summary.devices = device_names(job.devices, world);
}

std::vector<int> LiveRun::own_part(const std::vector<int>& all) const {
  if (all.size() != summary.devices.size()) return job.learners_per_device;
  const auto first = std::accumulate(devices_of_rank_.begin(), devices_of_rank_.begin() + world.rank(), 0);
  return {all.begin() + first, all.begin() + first + static_cast<std::ptrdiff_t>(job.devices.size())};
}

void LiveRun::enter(engine::process::Phase phase) const {
  std::uint64_t round = 0;
  if (session) {
    const scheduler::Scheduler& scheduler = session->scheduler();
    round = scheduler.batches() / static_cast<std::uint64_t>(scheduler.learners());
  }
  world.set_position(round, phase);
}

void LiveRun::add(const scheduler::Progress& progress) { (world.size() == 1 ? state.epoch : here_).add(progress); }

scheduler::Progress LiveRun::drain() {
  scheduler::Progress progress = session->scheduler().drain();
  add(progress);
  if (world.size() > 1) state.epoch.add(sum_over(world, std::exchange(here_, {})));
  throw_divergence(world, session->scheduler().take_divergence());
  return progress;
}

scheduler::Progress LiveRun::epoch_so_far() const {
  scheduler::Progress sum = state.epoch;
  if (world.size() == 1) return sum;
  for (int rank = 0; rank < world.size(); ++rank) sum.add(here_);
  return sum;
}

void LiveRun::set_learners(std::vector<int> per_device) {
  state.learners_per_device = std::move(per_device);
  summary.learners_per_device = join(world, state.learners_per_device);
  summary.learners = std::accumulate(summary.learners_per_device.begin(), summary.learners_per_device.end(), 0);
}

void LiveRun::add_learner_step(std::vector<int> per_device) {
  set_learners(std::move(per_device));
  const std::uint64_t batch = session ? session->scheduler().batches() : 0;
  add_step(state.learners, {batch, summary.learners_per_device, {}});
}

void LiveRun::apply_rate_factor() const {
  session->scheduler().lower_rate(state.plateau.factor * state.rollbacks.factor,
                                  state.plateau.drops + state.rollbacks.count);
}

RunOrigin LiveRun::origin() const { return origin_of(job, *session, context.program, summary.devices); }

double LiveRun::epochs(std::int64_t count) const {
  const dataflow::ShuffledOrder& order = session->training_order();
  return static_cast<double>(count) / static_cast<double>(order.batches_per_epoch() * order.batch_size());
}

}  // namespace arbalest::jobs
