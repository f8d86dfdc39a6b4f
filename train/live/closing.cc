#include "train/live/closing.h"

#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/process/all_gather.h"
#include "messages/failure.h"
#include "messages/text.h"
#include "saved_model/run_files.h"
#include "saved_model/safetensors.h"
#include "train/live/learned_nothing.h"
#include "train/processes/shared_results.h"

namespace arbalest::jobs {

namespace {

void save(LiveRun& run, const std::vector<dataflow::NamedTensor>& model) {
  if (!run.leads() || run.context.output_directory.empty()) return;
  run.notify(&RunObserver::on_save);
  const engine::process::World::FileWork work(run.world);  // the others wait
  const std::filesystem::path path = std::filesystem::path(run.context.output_directory) / kModelFile;
  run.summary.model_sha256 = write_safetensors(path, model, run.metadata);
}

// Adds the unreadable examples of the other processes to the state of rank 0.
void add_skipped_elsewhere(LiveRun& run) {
  const std::vector<double> counts =
      engine::process::all_gather(run.world, static_cast<double>(run.session->skipped_examples()));
  const std::vector<std::string> firsts = engine::process::all_gather(run.world, run.session->first_skipped());
  for (std::size_t rank = 1; rank < counts.size() && run.leads(); ++rank) {
    run.state.skipped_examples += static_cast<std::int64_t>(counts[rank]);
    if (run.state.first_skipped.empty()) run.state.first_skipped = firsts[rank];
  }
}

// Sets the fields of the summary that are known at the end only.
void complete_summary(LiveRun& run) {
  RunSummary& summary = run.summary;
  const RunState& state = run.state;
  run.scores.write_to(summary);
  if (run.session) {
    summary.skipped_examples = state.skipped_examples + run.session->skipped_examples();
    summary.first_skipped = state.first_skipped.empty() ? run.session->first_skipped() : state.first_skipped;
    summary.mini_batches = run.session->scheduler().batches();
    summary.examples = run.examples();
    summary.epochs_begun = run.epochs(run.examples());
    summary.largest_team = run.session->largest_team();
  }
  summary.staleness = state.staleness;
  sma::add(summary.staleness, state.epoch.staleness);
  summary.train_seconds = run.seconds();
  const double training_seconds = state.training_seconds + state.epoch_seconds;
  summary.reached = {.epochs = state.epochs,
                     .target = summary.status == RunStatus::kTargetReached,
                     .patience = run.scores.patience_is_over(),
                     .minutes = minutes_are_over(run.job.training, training_seconds)};
  summary.images_per_second = training_seconds > 0.0 ? static_cast<double>(summary.examples) / training_seconds : 0.0;
}

}  // namespace

void save_and_evaluate(LiveRun& run, RunCheckpoints* checkpoints, SkipWatch& skips) {
  RunSummary& summary = run.summary;
  scheduler::Scheduler& scheduler = run.session->scheduler();
  run.enter(engine::process::Phase::kSaving);
  // Statistics are not re-estimated then, because that takes time.
  const bool is_cut_short = summary.status == RunStatus::kStopped || summary.status == RunStatus::kDiverged;
  if (summary.status != RunStatus::kDiverged) scheduler.verify_copies();
  // The checkpoint comes first: a run that is killed here can then go on, and its model can be made again.
  if (checkpoints != nullptr) {
    checkpoints->report(/*wait=*/true);
    summary.best_model = checkpoints->best();
  }
  if (is_cut_short) save(run, scheduler.snapshot(scheduler::Statistics::kAveraged));
  save(run, scheduler.snapshot());
  run.enter(engine::process::Phase::kEvaluation);
  add_skipped_elsewhere(run);
  skips.begin_evaluation();
  run.scores.evaluate_at_end(*run.session);
  skips.check_evaluation();
  for (const std::string& text : warnings_of_all(run.world, run.session->reading_warnings())) {
    run.notify(&RunObserver::on_warning, text);
  }
  const std::string problem = run.scores.problem();
  if (summary.status != RunStatus::kDiverged && !problem.empty()) {
    summary.status = RunStatus::kDiverged;
    summary.message += fmt::format("{}training had diverged: {}", summary.message.empty() ? "" : "; ", problem);
  }
  if (summary.status != RunStatus::kCompleted) return;
  const std::string nothing =
      learned_nothing(run.state.untrained_loss, run.state.epoch_loss, run.examples() / run.job.training.batch_size);
  if (nothing.empty()) return;
  summary.status = RunStatus::kDiverged;
  summary.message += fmt::format("{}training diverged: {}; {}, or check the data's normalization",
                                 summary.message.empty() ? "" : "; ", nothing, scheduler.divergence_remedy());
}

void finish_run(LiveRun& run) {
  complete_summary(run);
  notify_finish(run.context.observers, run.summary);
}

void fail_run(LiveRun& run, const std::exception& error) noexcept {
  try {
    run.summary.status = RunStatus::kFailed;
    run.summary.message = as_error(error).what();
    finish_run(run);
  } catch (const std::exception&) {
    return;  // the caller rethrows the first error
  }
}

}  // namespace arbalest::jobs
