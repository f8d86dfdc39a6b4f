#include "jobs/report/reopen/final_model.h"

#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/error.h"
#include "jobs/checkpoint/best_model.h"
#include "jobs/checkpoint/checkpoint_saver.h"
#include "jobs/checkpoint/checkpoint_store.h"
#include "jobs/export/run_files.h"
#include "jobs/messages/text.h"
#include "jobs/options/evaluation_job.h"
#include "jobs/report/run_list.h"
#include "jobs/report/run_lock.h"

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

}  // namespace

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

void fail_without_model(const fs::path& run) {
  engine::fail(ErrorKind::kCheckpoint, "the run '{}' has no model: {}", run.string(), reason(run));
}

void require_checkpoints(const fs::path& run) {
  if (!is_sparse(run)) return;
  engine::fail(ErrorKind::kUsage,
               "--checkpoint: {} and no best model; leave it out to take the final model of the run '{}'",
               kNoCheckpoints, run.string());
}

}  // namespace arbalest::jobs
