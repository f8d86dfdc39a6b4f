#include <optional>
#include <string>

#include "messages/text.h"
#include "options/synchronization/job_schemes.h"
#include "train/data/class_table.h"
#include "train/graph/graph_trainer.h"
#include "train/live/model_scores.h"
#include "train/live/run_rows.h"
#include "train/processes/shared_results.h"
#include "train/session/session.h"
#include "train/session/settled_precision.h"
#include "train/weights/initial_weights.h"

namespace arbalest::jobs {

DryRun dry_run_graph(const JobOptions& job, const RunContext& context) {
  JobOptions fitting = job;
  std::optional<InitialWeights> weights;
  engine::process::World alone;
  engine::process::World& world = context.world == nullptr ? alone : *context.world;
  together(world, [&] { require_stable_steps(job); });
  if (job.initialize) together(world, [&] { weights = read_initial_weights(*job.initialize, *job.graph); });
  std::string choice;
  if (job.training.chooses_precision) {
    choice = "; precision " + settle_precision(fitting, context.device_options, world).text;
  }
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
  const std::string text =
      fmt::format("{}: {}{} trained (loss {}), {}{}", job.name,
                  has_rounds(fitting.synchronization, scheduler.learners()) ? "one round of " : "",
                  counted(progress.tasks, "mini-batch"), loss_text(mean_of(progress.sums.loss(), progress.examples)),
                  scores.text(), choice);
  return {text, fitting.warnings};
}

}  // namespace arbalest::jobs
