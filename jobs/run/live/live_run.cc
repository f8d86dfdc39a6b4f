#include "jobs/run/live/live_run.h"

#include <numeric>
#include <utility>

#include "jobs/run/run_start.h"

namespace arbalest::jobs {

LiveRun::LiveRun(const JobOptions& job_options, const RunContext& run_context)
    : job(job_options), context(run_context), start(run_context.now()), scores(job_options) {
  summary.job = job.name;
  summary.metric = metric_of(job);
  summary.precision = job.training.precision;
  summary.seed = job.training.seed;
  summary.accuracy_set = scores.accuracy_set();
  if (context.output_directory.empty()) {  // there is no place for checkpoints
    job.checkpoint.keep_last = 0;
    job.training.divergence.rolls_back = false;
  }
  add_learner_step(job.learners_per_device);
  for (const engine::DeviceSpec& device : job.devices) summary.devices.push_back(device.name);
}

void LiveRun::set_learners(std::vector<int> per_device) {
  state.learners_per_device = std::move(per_device);
  summary.learners_per_device = state.learners_per_device;
  summary.learners = std::accumulate(state.learners_per_device.begin(), state.learners_per_device.end(), 0);
}

void LiveRun::add_learner_step(std::vector<int> per_device) {
  set_learners(std::move(per_device));
  const std::uint64_t batch = session ? session->scheduler().batches() : 0;
  add_step(state.learners, {batch, state.learners_per_device, {}});
}

void LiveRun::apply_rate_factor() const {
  session->scheduler().lower_rate(state.plateau.factor * state.rollbacks.factor,
                                  state.plateau.drops + state.rollbacks.count);
}

double LiveRun::epochs(std::int64_t count) const {
  const dataflow::ShuffledOrder& order = session->training_order();
  return static_cast<double>(count) / static_cast<double>(order.batches_per_epoch() * order.batch_size());
}

}  // namespace arbalest::jobs
