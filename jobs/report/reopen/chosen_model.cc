#include "jobs/report/reopen/chosen_model.h"

#include <ranges>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "engine/error.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/checkpoint_saver.h"
#include "jobs/checkpoint/checkpoint_store.h"
#include "jobs/checkpoint/saved_run.h"
#include "jobs/report/reopen/final_model.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

ChosenModel final_model(const fs::path& run, const Tell& warn) {
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

ChosenModel best_model(const fs::path& run, const Tell& warn) {
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

ChosenModel choose_model(const fs::path& run, const std::string& checkpoint, const Tell& warn) {
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
