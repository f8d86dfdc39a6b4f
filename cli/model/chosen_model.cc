#include "cli/model/chosen_model.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/job_arguments.h"
#include "engine/error.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/report/resume_point.h"

namespace arbalest::cli {

namespace fs = std::filesystem;
using engine::ErrorKind;

namespace {

// Refuses a run without a model, with the reason.
void check_model(const fs::path& run) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(run / jobs::kModelFile, error))) return;
  const char* reason =
      jobs::is_running(run) ? "it is still training, and saves its model at the end; take what it has saved so far by "
                              "--checkpoint last or --checkpoint best; the signal SIGUSR1 makes it save a checkpoint"
      : jobs::read_summary(run) ? "it ended without one; its summary.json says why"
                                : "it was killed before it saved one; go on with it by 'arbalest train "
                                  "--resume=auto', or take its newest checkpoint by --checkpoint last";
  engine::fail(ErrorKind::kCheckpoint, "the run '{}' has no model: {}", run.string(), reason);
}

ChosenModel final_model(const fs::path& run) {
  check_model(run);
  ChosenModel model{(run / jobs::kModelFile).string(), "", jobs::read_summary(run), {}};
  if (model.summary) model.sha256 = model.summary->model_sha256;
  if (model.sha256.empty()) {
    spdlog::warn("'{}' was cut short and has no hash of its model: whether that was changed cannot be told",
                 run.string());
  }
  return model;
}

}  // namespace

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("RUN", arguments.run, "Directory of the run, or of one of its checkpoints")
      ->required()
      ->check(check_name);
  command
      .add_option("--checkpoint", arguments.checkpoint,
                  "Model to take instead of the final one: best, last (the newest checkpoint), or the number of a "
                  "checkpoint")
      ->type_name("best|last|N")
      ->check(check_name);
  command
      .add_option(
          "--devices", arguments.devices,
          "Device to compute on: cpu, cpu:0-1, cuda:0; repeatable (default: the run's devices, or those of this "
          "machine if the run's are missing)")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void find_run(RunArguments& arguments) {
  arguments.run = jobs::full_checkpoint_path(arguments.run).string();
  const fs::path run = arguments.run;
  std::error_code error;
  if (fs::exists(run / jobs::kJobFile, error)) return;
  const bool is_there = error || fs::exists(run, error);
  const std::string reason = error      ? error.message()
                             : is_there ? fmt::format("it has no {}", jobs::kJobFile)
                                        : "it does not exist";
  engine::fail(ErrorKind::kUsage, "'{}' is not the directory of a run: {}", arguments.run, reason);
}

bool is_checkpoint(const RunArguments& arguments) {
  std::error_code error;
  return fs::exists(fs::path(arguments.run) / jobs::kManifestFile, error);
}

ChosenModel choose_model(const RunArguments& arguments) {
  const fs::path run = arguments.run;
  if (arguments.checkpoint.empty()) {
    if (!is_checkpoint(arguments)) return final_model(run);
    return {(jobs::open_checkpoint(run).path / jobs::kModelFile).string(), "", {}, {}};
  }
  if (arguments.checkpoint != "best") {
    return {(jobs::checkpoint_named(run, arguments.checkpoint).path / jobs::kModelFile).string(), "", {}, {}};
  }
  const fs::path best = run / jobs::kBestModel;
  std::error_code error;
  if (fs::exists(best, error)) return {best.string(), "", {}, jobs::best_model_in(run)};
  engine::fail(ErrorKind::kCheckpoint,
               "the run '{}' has no {}: no epoch has ended, or checkpoint.keep_best or checkpoint.keep_last of its job "
               "is 0",
               arguments.run, jobs::kBestModel);
}

}  // namespace arbalest::cli
