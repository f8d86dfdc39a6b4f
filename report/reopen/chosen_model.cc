#include "report/reopen/chosen_model.h"

#include <optional>
#include <ranges>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/saved_run.h"
#include "engine/base/error.h"
#include "messages/text.h"
#include "options/loading/evaluation_job.h"
#include "report/run_list.h"
#include "report/run_lock.h"
#include "saved_model/run_files.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

constexpr const char* kNoCheckpoints = "jobs over sparse rows, or with hogwild on ratings, save no checkpoints";

bool is_sparse(const fs::path& run) { return is_sparse_job_file((run / kJobFile).string()); }

// "the best model at the end of an epoch by --checkpoint best, or the newest checkpoint by --checkpoint last"; "" if
// the run has neither.
std::string other_models(const fs::path& run) {
  std::vector<std::string> models;
  std::error_code error;
  if (fs::exists(run / kBestModel, error)) {
    models.emplace_back("the best model at the end of an epoch by --checkpoint best");
  }
  if (has_checkpoints(run)) models.emplace_back("the newest checkpoint by --checkpoint last");
  return fmt::format("{}", fmt::join(models, ", or "));
}

// Returns the way out for a run that has ended by an error, and that a repetition of its command may complete.
std::string way_on(const fs::path& run) {
  if (is_sparse(run)) return fmt::format("{}, so train it anew", kNoCheckpoints);
  const std::string models = other_models(run);
  const std::string train = "'arbalest train JOB --output RUN --resume=auto'";
  if (has_checkpoints(run)) return fmt::format("go on with it by {}, or take {}", train, models);
  const std::string anew = fmt::format("it has no checkpoint, so begin it anew by {}", train);
  return models.empty() ? anew : fmt::format("{}, or take {}", anew, models);
}

std::string smaller_steps(const fs::path& run) {
  const std::string models = other_models(run);
  return fmt::format("{}train anew with smaller steps", models.empty() ? "" : fmt::format("take {}, or ", models));
}

std::string reason(const fs::path& run) {
  if (is_running(run)) {
    return is_sparse(run) ? "it is still training, and saves its model at the end; SIGINT or SIGTERM ends it early and "
                            "saves the model"
                          : "it is still training, and saves its model at the end; take what it has saved so far by "
                            "--checkpoint last or --checkpoint best; the signal SIGUSR1 makes it save a checkpoint";
  }
  const std::optional<SavedSummary> summary = read_summary(run);
  if (!summary) return fmt::format("it was killed before it saved one; {}", way_on(run));
  if (summary->status == "diverged") {
    return fmt::format("it diverged before an epoch had ended with a finite model; {}", smaller_steps(run));
  }
  if (!summary->model_sha256.empty()) {
    const std::string models = other_models(run);
    return fmt::format("its {} names one, so it was deleted or moved after it had been saved; restore it{}{}",
                       kSummaryFile, models.empty() ? "" : ", or take ", models);
  }
  return fmt::format("it ended without one, with the status '{}'; its {} says why; {}", summary->status, kSummaryFile,
                     way_on(run));
}

// Returns a warning for the final model of a run that diverged or failed, or that was resumed and killed; "" for
// others. Names the run's status, what the model's file holds, and other models of the run.
std::string warning_about_model(const fs::path& run, const SavedSummary& summary) {
  if (summary.status == "diverged") {
    return fmt::format("the run '{}' diverged: its {} has finite numbers, but may be of no use; {}", run.string(),
                       kModelFile, smaller_steps(run));
  }
  if (summary.status == "failed") {
    return fmt::format("the run '{}' failed: its {} may be older than its last epoch; {}", run.string(), kModelFile,
                       way_on(run));
  }
  if (status_of_run(run) == "killed") {
    return fmt::format("the run '{}' was resumed and then killed: its {} is that of the process before, after {}; {}",
                       run.string(), kModelFile, counted(summary.epochs, "epoch"), way_on(run));
  }
  return "";
}

// Refuses a run without a final model, with the reason and the way to a model. Throws kCheckpoint.
[[noreturn]] void fail_without_model(const fs::path& run) {
  engine::fail(ErrorKind::kCheckpoint, "the run '{}' has no model: {}", run.string(), reason(run));
}

// Throws kUsage for a run whose job has no checkpoints and no best model to choose (RUN with --checkpoint).
void require_checkpoints(const fs::path& run) {
  if (!is_sparse(run)) return;
  engine::fail(ErrorKind::kUsage,
               "--checkpoint: {} and no best model; leave it out to take the final model of the run '{}'",
               kNoCheckpoints, run.string());
}

ChosenModel final_model(const fs::path& run, const Warn& warn) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(run / kModelFile, error))) fail_without_model(run);
  ChosenModel model{(run / kModelFile).string(), "", read_summary(run), {}};
  if (model.summary) {
    model.sha256 = model.summary->model_sha256;
    if (const std::string warning = warning_about_model(run, *model.summary); !warning.empty()) warn(warning);
  }
  if (model.sha256.empty()) {
    warn(fmt::format("'{}' was cut short and has no hash of its model, so a change of the model cannot be detected",
                     run.string()));
  }
  return model;
}

// Returns the SHA-256 of the best model that a checkpoint or the summary of the run names; "" if none of them does.
std::string sha256_of_best(const fs::path& run, const BestModel& best) {
  std::vector<Checkpoint> checkpoints = list_checkpoints(checkpoints_of(run));
  for (const Checkpoint& checkpoint : checkpoints | std::views::reverse) {
    const std::optional<BestModel> named = best_model_named_by(checkpoint);
    if (named && *named == best && !named->sha256.empty()) return named->sha256;
  }
  const std::optional<SavedSummary> summary = read_summary(run);
  return summary && summary->best_batches == best.batches ? summary->best_sha256 : "";
}

ChosenModel best_model(const fs::path& run, const Warn& warn) {
  ChosenModel model{(run / kBestModel).string(), "", {}, best_model_in(run)};
  if (model.best) model.sha256 = sha256_of_best(run, *model.best);
  if (model.sha256.empty()) {
    warn(
        fmt::format("no checkpoint or summary has the hash of '{}', so a change of it cannot be detected", model.path));
  }
  return model;
}

}  // namespace

fs::path find_run(const fs::path& given) {
  const fs::path run = full_checkpoint_path(given);
  std::error_code error;
  if (fs::exists(run / kJobFile, error)) return run;
  const bool is_there = error || fs::exists(run, error);
  const std::string reason = error      ? error.message()
                             : is_there ? fmt::format("it has no {}", kJobFile)
                                        : "it does not exist";
  engine::fail(ErrorKind::kUsage, "'{}' is not the directory of a run: {}", run.string(), reason);
}

bool is_checkpoint(const fs::path& run) {
  std::error_code error;
  return fs::exists(run / kManifestFile, error);
}

ChosenModel choose_model(const fs::path& run, const std::string& checkpoint, const Warn& warn) {
  if (checkpoint.empty()) {
    if (!is_checkpoint(run)) return final_model(run, warn);
    return {(open_checkpoint(run).path / kModelFile).string(), "", {}, {}};
  }
  require_checkpoints(run);
  if (checkpoint != "best") return {(checkpoint_named(run, checkpoint).path / kModelFile).string(), "", {}, {}};
  const fs::path best = run / kBestModel;
  std::error_code error;
  if (fs::exists(best, error)) return best_model(run, warn);
  engine::fail(ErrorKind::kCheckpoint,
               "the run '{}' has no {}: no epoch has ended, or checkpoint.keep_best or checkpoint.keep_last of its job "
               "is 0",
               run.string(), kBestModel);
}

}  // namespace arbalest::jobs
