#include "jobs/report/reopen/chosen_model.h"

#include <system_error>

#include <fmt/format.h>

#include "engine/error.h"
#include "jobs/checkpoint/checkpoint.h"
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
    warn(fmt::format("'{}' was cut short and has no hash of its model: whether that was changed cannot be told",
                     run.string()));
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
  if (fs::exists(best, error)) return {best.string(), "", {}, best_model_in(run)};
  engine::fail(ErrorKind::kCheckpoint,
               "the run '{}' has no {}: no epoch has ended, or checkpoint.keep_best or checkpoint.keep_last of its job "
               "is 0",
               run.string(), kBestModel);
}

}  // namespace arbalest::jobs
