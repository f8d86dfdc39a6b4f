#include "train/live/run_checkpoints.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"
#include "messages/failure.h"

namespace arbalest::jobs {

RunCheckpoints::RunCheckpoints(LiveRun& run) : run_(run), origin_(run.origin()) {
  if (run.leads()) {
    saver_.emplace(run.context.output_directory, run.job.checkpoint, run.scores.order(), batches(), run.seconds(),
                   run.state.best_model, run.job.training.divergence.rolls_back);
  }
  if (run.world.size() == 1) return;
  shared_.emplace(run.world, run.context.output_directory);
  if (!shared_->view().warning.empty()) run.job.warnings.push_back(shared_->view().warning);
}

bool RunCheckpoints::is_due() const {
  const std::atomic<int>* requests = run_.context.save_requests;
  if (requests != nullptr && *requests != answered_requests_) return true;
  return saver_ && (saver_->is_due(batches(), run_.seconds(), std::nullopt) || is_point_due(std::nullopt));
}

bool RunCheckpoints::is_point_due(std::optional<int> ended_epochs) const {
  return run_.job.training.divergence.rolls_back &&
         is_rollback_point_due(run_.job.checkpoint, batches(), run_.state.rollbacks.point, ended_epochs);
}

RunState RunCheckpoints::state_now() const {
  RunState state = run_.state;
  state.learners_per_device = run_.summary.learners_per_device;
  state.elapsed_seconds = run_.seconds();
  state.skipped_examples += run_.session->skipped_examples();
  if (state.first_skipped.empty()) state.first_skipped = run_.session->first_skipped();
  state.scores = run_.scores.history();
  state.kernels = run_.session->kernel_choices();
  if (run_.context.log_bytes) state.metrics_bytes = run_.context.log_bytes();
  return state;
}

bool RunCheckpoints::has_memory(const std::function<void()>& step) {
  try {
    step();
    return true;
  } catch (const std::exception& error) {
    if (!is_shortage(error) || run_.world.size() > 1) throw;
    unsaved_ = as_error(error).what();
  }
  saver_->skip(batches(), run_.seconds());
  warn(fmt::format("no memory for a copy of the run's state, so there is no checkpoint here: {}", unsaved_));
  return false;
}

void RunCheckpoints::warn(const std::string& text) { run_.notify(&RunObserver::on_warning, text); }

// At the end of an epoch the model is saved as it was evaluated, with its statistics re-estimated.
std::optional<SavedRun> RunCheckpoints::copy() {
  SavedRun saved;
  const bool is_copied = has_memory([&] {
    scheduler::Scheduler& scheduler = run_.session->scheduler();
    if (run_.scores.is_known()) saved.model = scheduler.snapshot();
    saved.training = scheduler.save(saver_ ? saver_->take_memory() : scheduler::TrainingState{});
  });
  if (!is_copied) return std::nullopt;
  return saved;
}

void RunCheckpoints::complete(SavedRun& saved, std::optional<double> score, bool is_best) const {
  saved.run = state_now();
  saved.origin = origin_;
  saved.pixels = run_.job.data.pixels;
  saved.job_text = run_.job.resolved_text;
  saved.metadata = run_.metadata;
  saved.run.present_score = score;
  saved.run.best_model = is_best ? std::optional(best_model(*score)) : saver_->best();
}

void RunCheckpoints::begin_save() {
  run_.enter(engine::process::Phase::kSaving);
  report(/*wait=*/true);
  if (run_.context.save_requests != nullptr) answered_requests_ = *run_.context.save_requests;
}

void RunCheckpoints::save(std::optional<double> score, bool is_best, std::optional<int> ended_epochs) {
  std::optional<SavedRun> saved = copy();
  if (!saved) return;
  std::uint64_t& point = run_.state.rollbacks.point;
  if (is_rollback_point_due(run_.job.checkpoint, batches(), point, ended_epochs)) point = batches();
  if (saver_) complete(*saved, score, is_best);
  std::unique_ptr<CheckpointWriter> writer;
  AddFiles add_files;
  if (shared_) {
    if (saver_) writer = saver_->begin(batches(), run_.seconds());
    std::optional<AddFiles> begun = shared_->begin(saved->training, writer.get());
    if (!begun) return;
    add_files = std::move(*begun);
  }
  if (saver_) saver_->save(std::move(*saved), run_.seconds(), is_best, std::move(writer), std::move(add_files));
}

void RunCheckpoints::write_again(SavedRun saved) {
  if (!saver_) return;
  const RunState now = state_now();
  saved.run.elapsed_seconds = now.elapsed_seconds;
  saved.run.skipped_examples = now.skipped_examples;
  saved.run.first_skipped = now.first_skipped;
  saved.run.metrics_bytes = now.metrics_bytes;
  saved.run.rollbacks = now.rollbacks;
  saved.run.scores.best_test = now.scores.best_test;
  saved.run.scores.best_validation = now.scores.best_validation;
  saved.run.best_model = saver_->best();
  saved.metadata = run_.metadata;
  saver_->save(std::move(saved), run_.seconds(), /*is_best=*/false);
  report(/*wait=*/true);
}

void RunCheckpoints::save_between_rounds() {
  begin_save();
  // The end of an epoch may have saved this point, with its evaluated model.
  if (decide(saver_ && !saver_->holds(batches()))) {
    save(std::nullopt, /*is_best=*/false, /*ended_epochs=*/std::nullopt);
  } else {
    unsaved_.clear();
  }
}

void RunCheckpoints::save_after_epoch(bool is_last) {
  const std::optional<double> score = run_.scores.decisive_score();
  const bool is_best = decide(saver_ && score && saver_->is_best(*score));
  const bool is_asked = run_.world.any_of(is_last || is_due() ? 1 : 0) != 0;
  const int epochs = run_.state.epochs;
  if (is_asked || is_point_due(epochs) || decide(saver_ && saver_->is_due(batches(), run_.seconds(), epochs))) {
    begin_save();
    save(score, is_best, epochs);
  } else if (is_best) {
    report(/*wait=*/true);
    scheduler::Tensors model;
    if (!has_memory([&] { model = run_.session->scheduler().snapshot(); }) || !saver_) return;
    saver_->save_best(std::move(model), best_model(*score), run_.metadata);
  }
}

void RunCheckpoints::require_saved() const {
  if (unsaved_.empty()) return;
  engine::fail(
      engine::ErrorKind::kOutOfMemory,
      "the run has stopped, but its state was not saved: {}; --resume=auto goes on from the checkpoint before, if "
      "there is one",
      unsaved_);
}

void refuse_save_requests(const RunContext& context, int& answered) {
  if (context.save_requests == nullptr || *context.save_requests == answered) return;
  answered = *context.save_requests;
  for (RunObserver* observer : context.observers) {
    observer->on_warning("SIGUSR1 asks for a checkpoint, but this job saves none (checkpoint.keep_last is 0)");
  }
}

void RunCheckpoints::report(bool wait) {
  if (wait) collect_parts();
  if (!saver_) return;
  const engine::process::World::FileWork work(run_.world);
  while (const std::optional<SaveResult> result = saver_->take_result(wait)) {
    const double epochs =
        static_cast<double>(result->batches) / static_cast<double>(run_.session->training_order().batches_per_epoch());
    std::vector<std::string> warnings = result->warnings;
    if (result->is_checkpoint) unsaved_ = result->path.empty() ? result->failure : "";
    if (!result->failure.empty()) {
      warnings.push_back(fmt::format(
          "the checkpoint of epoch {:.2f} {}: {}; the run goes on, and earlier checkpoints are "
          "intact",
          epochs, result->path.empty() ? "was not saved" : "was saved, older ones were not deleted", result->failure));
    }
    if (!result->path.empty()) {
      run_.notify(&RunObserver::on_checkpoint,
                  CheckpointRow{result->batches, epochs, run_.seconds(), result->path.string()});
    }
    for (const std::string& warning : warnings) warn(warning);
  }
}

}  // namespace arbalest::jobs
