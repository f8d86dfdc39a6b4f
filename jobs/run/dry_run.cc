#include <optional>

#include "jobs/messages/text.h"
#include "jobs/options/synchronization/job_schemes.h"
#include "jobs/run/data/class_table.h"
#include "jobs/run/live/run_rows.h"
#include "jobs/run/model_scores.h"
#include "jobs/run/processes/shared_results.h"
#include "jobs/run/session.h"
#include "jobs/run/sparse/sparse_trainer.h"
#include "jobs/run/trainer.h"
#include "jobs/run/weights/initial_weights.h"

namespace arbalest::jobs {

DryRun dry_run(const JobOptions& job, const RunContext& context) {
  if (job.sparse) return dry_run_sparse(job, context);
  JobOptions fitting = job;
  std::optional<InitialWeights> weights;
  engine::process::World alone;
  engine::process::World& world = context.world == nullptr ? alone : *context.world;
  together(world, [&] { require_stable_steps(job); });
  if (job.initialize) together(world, [&] { weights = read_initial_weights(*job.initialize, *job.graph); });
  const auto session =
      open_session(fitting, context.data_root, context.device_options, Session::Input::kResident, &world);
  together(world, [&] {
    if (world.rank() == 0) read_class_table(job.data, context.data_root, fitting.warnings);
  });
  scheduler::Scheduler& scheduler = session->scheduler();
  if (weights) load_initial_weights(*weights, scheduler);
  scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
  progress.add(scheduler.drain());
  throw_divergence(world, scheduler.take_divergence());
  progress = sum_over(world, progress);
  ModelScores scores(fitting);
  scores.evaluate_at_end(*session);
  scores.require_finite(fmt::format("after {}", counted(progress.tasks, "mini-batch")), scheduler);
  const std::string text = fmt::format("{}: {}{} trained (loss {}), {}", job.name,
                                       has_rounds(fitting.synchronization, scheduler.learners()) ? "one round of " : "",
                                       counted(progress.tasks, "mini-batch"),
                                       loss_text(mean_of(progress.sums.loss(), progress.examples)), scores.text());
  return {text, fitting.warnings};
}

}  // namespace arbalest::jobs
