// arbalest evaluate RUN
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "jobs/checkpoint/best_model.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/messages/text.h"
#include "jobs/options/evaluation_job.h"
#include "jobs/report/class_report.h"
#include "jobs/report/json.h"
#include "jobs/report/resume_point.h"
#include "jobs/report/run_directory.h"
#include "jobs/run/evaluation.h"

namespace arbalest::cli {

namespace {

struct EvaluateArguments {
  std::string run;
  std::vector<std::string> devices;
  std::string data_root;
  std::string split = "test";
  std::string checkpoint;
  bool per_class = false;
  bool json = false;
};

// RUN may also be a checkpoint of a run, which its manifest verifies.
bool is_checkpoint(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::exists(directory / jobs::kManifestFile, error);
}

// --data-root, else the data root of the run if it is here, else what a new run would use.
std::string data_root_of(const EvaluateArguments& arguments) {
  if (!arguments.data_root.empty()) return arguments.data_root;
  std::error_code error;
  const std::filesystem::path run = arguments.run;
  // A checkpoint lies in RUN/checkpoints.
  std::string saved = jobs::saved_data_root(is_checkpoint(run) ? (run / ".." / "..").lexically_normal() : run);
  return std::filesystem::is_directory(saved, error) ? saved : data_root("");
}

// Refuses a run without a model, with the reason.
void check_model(const EvaluateArguments& arguments) {
  const std::filesystem::path run = arguments.run;
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(run / jobs::kModelFile, error))) return;
  const char* reason =
      jobs::is_running(run) ? "it is still training, and saves its model at the end; evaluate what it has saved so far "
                              "by --checkpoint last or --checkpoint best; the signal SIGUSR1 makes it save a checkpoint"
      : jobs::read_summary(run) ? "it ended without one; its summary.json says why"
                                : "it was killed before it saved one; go on with it by 'arbalest train "
                                  "--resume=auto', or evaluate its newest checkpoint by --checkpoint last";
  engine::fail(engine::ErrorKind::kCheckpoint, "the run '{}' has no model: {}", arguments.run, reason);
}

// The file that --checkpoint chooses, and what was known of it when it was saved.
struct ChosenModel {
  std::string path;
  std::string sha256;           // "" if it is not known
  std::optional<double> score;  // on the set that is evaluated; none if it is not known
};

ChosenModel final_model(const EvaluateArguments& arguments, jobs::EvaluationSet set) {
  if (is_checkpoint(arguments.run)) {
    return {(jobs::open_checkpoint(arguments.run).path / jobs::kModelFile).string(), "", {}};
  }
  check_model(arguments);
  const std::optional<jobs::SavedSummary> saved = jobs::read_summary(arguments.run);
  ChosenModel model{(std::filesystem::path(arguments.run) / jobs::kModelFile).string(), "", {}};
  if (saved) {
    model.sha256 = saved->model_sha256;
    model.score = saved->score(set);
  }
  if (model.sha256.empty()) {
    spdlog::warn("'{}' was cut short and has no hash of its model: whether that was changed cannot be told",
                 arguments.run);
  }
  return model;
}

// `judged`: the set by which the run was judged, so that its best model has a score on it.
ChosenModel model_of(const EvaluateArguments& arguments, jobs::EvaluationSet set, jobs::EvaluationSet judged) {
  const std::filesystem::path run = arguments.run;
  if (arguments.checkpoint.empty()) return final_model(arguments, set);
  if (arguments.checkpoint == "best") {
    const std::filesystem::path best = run / jobs::kBestModel;
    std::error_code error;
    if (std::filesystem::exists(best, error)) {
      const std::optional<jobs::BestModel> saved = jobs::best_model_in(run);
      return {best.string(), "", saved && set == judged ? std::optional(saved->score) : std::nullopt};
    }
    engine::fail(
        engine::ErrorKind::kCheckpoint,
        "the run '{}' has no {}: no epoch has ended, or checkpoint.keep_best or checkpoint.keep_last of its job "
        "is 0",
        arguments.run, jobs::kBestModel);
  }
  return {(jobs::checkpoint_named(run, arguments.checkpoint).path / jobs::kModelFile).string(), "", {}};
}

int evaluate(EvaluateArguments arguments) {
  arguments.run = jobs::full_checkpoint_path(arguments.run).string();
  const std::filesystem::path run = arguments.run;
  std::error_code error;
  if (!std::filesystem::exists(run / jobs::kJobFile, error)) {
    const bool is_there = error || std::filesystem::exists(run, error);
    const std::string reason = error      ? error.message()
                               : is_there ? fmt::format("it has no {}", jobs::kJobFile)
                                          : "it does not exist";
    engine::fail(engine::ErrorKind::kUsage, "'{}' is not the directory of a run: {}", arguments.run, reason);
  }
  const auto set = arguments.split == "test" ? jobs::EvaluationSet::kTest : jobs::EvaluationSet::kValidation;
  const jobs::JobOptions job = jobs::load_for_evaluation((run / jobs::kJobFile).string(), arguments.devices);
  const auto judged = job.data.has_validation() ? jobs::EvaluationSet::kValidation : jobs::EvaluationSet::kTest;
  const ChosenModel model = model_of(arguments, set, judged);
  log_warnings(job.warnings);
  jobs::RunContext context;
  context.data_root = data_root_of(arguments);
  const jobs::EvaluationResult result =
      jobs::evaluate_run(job, model.path, model.sha256, context, {.set = set, .per_class = arguments.per_class});
  const std::string metric = arguments.split + (result.rmse ? "_rmse" : "_accuracy");
  const double score = result.rmse.value_or(result.accuracy);
  if (model.score && *model.score != score) {
    spdlog::warn(
        "{} is {} now and was {} when '{}' was saved: its job.txtpb, the data, the program or the device is "
        "another than then",
        metric, score, *model.score, arguments.run);
  }
  if (arguments.json) {
    fmt::print("{}\n", jobs::to_json(result).dump(2));
  } else {
    fmt::print("{} {}\n", metric, score);
    if (result.top5_accuracy) fmt::print("{}_top5_accuracy {}\n", arguments.split, *result.top5_accuracy);
    fmt::print("{}_loss {}\nexamples {}\n", arguments.split, jobs::unsigned_nan(result.loss), result.examples);
    if (result.classes) fmt::print("\n{}", jobs::class_report(*result.classes));
  }
  return kOk;
}

}  // namespace

Command add_evaluate(CLI::App& program) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* command =
      program.add_subcommand("evaluate", "Measure the saved model of a run on its test or validation set");
  command->footer(
      "Examples:\n"
      "  arbalest evaluate runs/lenet-digits-20250131-142530\n"
      "  arbalest evaluate runs/lenet-digits-20250131-142530 --devices cpu\n"
      "  arbalest evaluate runs/lenet-digits-20250131-142530 --per-class\n"
      "\n"
      "On the run's devices the result equals the run's to the last digit. On another kind of device the\n"
      "last digits may differ.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("RUN", arguments->run, "Directory of the run, or of one of its checkpoints")
      ->required()
      ->check(check_name);
  command
      ->add_option("--checkpoint", arguments->checkpoint,
                   "Model to evaluate instead of the final one: best, last (the newest checkpoint), or the number of a "
                   "checkpoint")
      ->type_name("best|last|N")
      ->check(check_name);
  command
      ->add_option(
          "--devices", arguments->devices,
          "Device to evaluate on: cpu, cpu:0-1, cuda:0; repeatable (default: the run's devices, or those of this "
          "machine if the run's are missing)")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--split", arguments->split,
                   "Set to evaluate on (default: test); validation is for jobs that have such a set")
      ->type_name("SPLIT")
      ->check(CLI::IsMember({"test", "validation"}));
  command
      ->add_option("--data-root", arguments->data_root,
                   "Directory of the datasets (default: where the run found them, or $ARBALEST_DATA, or data/)")
      ->type_name("DIR")
      ->check(check_name);
  command->add_flag("--per-class", arguments->per_class,
                    "Also print accuracy and precision by class, and the confusion matrix");
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return evaluate(*arguments); }};
}

}  // namespace arbalest::cli
