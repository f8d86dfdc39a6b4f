#include "train/live/run_rows.h"

#include <algorithm>

#include "options/synchronization/job_schemes.h"

namespace arbalest::jobs {

double mean_of(double sum, std::int64_t count) { return count == 0 ? 0.0 : sum / static_cast<double>(count); }

RunProgress progress_row(const LiveRun& run, double elapsed_seconds, LiveRun::Clock::time_point epoch_start,
                         LiveRun::Clock::time_point training_start) {
  const scheduler::Progress epoch = run.epoch_so_far();
  const double done = run.epochs(run.examples());
  const double before = run.resumed ? run.resumed->epoch : 0.0;  // trained by earlier processes of the run
  const double left = std::max(0.0, static_cast<double>(run.job.training.max_epochs) - done);
  return {.epoch = done,
          .max_epochs = run.job.training.max_epochs,
          .train_loss = mean_of(epoch.sums.loss(), epoch.examples),
          .images_per_second = static_cast<double>(epoch.examples) / run.seconds_since(epoch_start),
          .elapsed_seconds = elapsed_seconds,
          .remaining_seconds = run.seconds_since(training_start) / (done - before) * left};
}

EpochRow epoch_row(const LiveRun& run, int epoch, double learning_rate, double elapsed_seconds,
                   double evaluation_seconds) {
  const scheduler::Progress& sums = run.state.epoch;
  EpochRow row{.epoch = epoch,
               .batch = run.session->scheduler().batches(),
               .train = training_scores(run.job.graph->metrics(), sums.sums, sums.examples),
               .images_per_second = static_cast<double>(sums.examples) / run.state.epoch_seconds,
               .elapsed_seconds = elapsed_seconds,
               .learning_rate = learning_rate,
               .learners_per_device = run.summary.learners_per_device,
               .largest_team = run.session->largest_team(),
               .staleness = sums.staleness,
               .training_seconds = run.state.epoch_seconds,
               .evaluation_seconds = evaluation_seconds,
               .host_microseconds_per_step = mean_of(1e6 * sums.host_seconds, sums.tasks)};
  if (has_rounds(present_scheme(run.job, run.state.switches_done), run.summary.learners)) {
    row.replica_distance = sums.replica_distance;
    row.replica_spread = sums.replica_spread;
  }
  run.scores.write_to(row);
  if (run.job.reports_loss_gap) row.averaging_loss_gap = run.scores.loss_gap(*run.session);
  return row;
}

}  // namespace arbalest::jobs
