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
#include "jobs/messages/text.h"
#include "jobs/options/evaluation_job.h"
#include "jobs/report/class_report.h"
#include "jobs/report/json.h"
#include "jobs/report/run_directory.h"
#include "jobs/run/evaluation.h"

namespace arbalest::cli {

namespace {

struct EvaluateArguments {
  std::string run;
  std::vector<std::string> devices;
  std::string data_root;
  std::string split = "test";
  bool per_class = false;
  bool json = false;
};

// --data-root, else the data root of the run if it is here, else what a new run would use.
std::string data_root_of(const EvaluateArguments& arguments) {
  if (!arguments.data_root.empty()) return arguments.data_root;
  std::string saved = jobs::saved_data_root(arguments.run);
  std::error_code error;
  return std::filesystem::is_directory(saved, error) ? saved : data_root("");
}

// Refuses a run without a model, with the reason.
void check_model(const EvaluateArguments& arguments) {
  const std::filesystem::path run = arguments.run;
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(run / jobs::kModelFile, error))) return;
  const char* reason = jobs::is_running(run)     ? "it is still training, and saves its model at the end"
                       : jobs::read_summary(run) ? "it ended without one; its summary.json says why"
                                                 : "it was killed before it saved one; train again";
  engine::fail(engine::ErrorKind::kCheckpoint, "the run '{}' has no model: {}", arguments.run, reason);
}

int evaluate(const EvaluateArguments& arguments) {
  const std::filesystem::path run = arguments.run;
  std::error_code error;
  if (!std::filesystem::exists(run / jobs::kJobFile, error)) {
    const bool is_there = error || std::filesystem::exists(run, error);
    const std::string reason = error      ? error.message()
                               : is_there ? fmt::format("it has no {}", jobs::kJobFile)
                                          : "it does not exist";
    engine::fail(engine::ErrorKind::kUsage, "'{}' is not the directory of a run: {}", arguments.run, reason);
  }
  check_model(arguments);
  const jobs::JobOptions job = jobs::load_for_evaluation((run / jobs::kJobFile).string(), arguments.devices);
  log_warnings(job.warnings);
  jobs::RunContext context;
  context.data_root = data_root_of(arguments);
  const std::optional<jobs::SavedSummary> saved = jobs::read_summary(run);
  const std::string sha256 = saved ? saved->model_sha256 : "";
  if (sha256.empty()) {
    spdlog::warn("'{}' was cut short and has no hash of its model: whether that was changed cannot be told",
                 arguments.run);
  }
  const auto set = arguments.split == "test" ? jobs::EvaluationSet::kTest : jobs::EvaluationSet::kValidation;
  const jobs::EvaluationResult result = jobs::evaluate_run(job, (run / jobs::kModelFile).string(), sha256, context,
                                                           {.set = set, .per_class = arguments.per_class});
  const std::string metric = arguments.split + (result.rmse ? "_rmse" : "_accuracy");
  const double score = result.rmse.value_or(result.accuracy);
  const std::optional<double> before = saved ? saved->score(set) : std::nullopt;
  if (before && *before != score) {
    spdlog::warn(
        "{} is {} now and was {} when '{}' was saved: its job.txtpb, the data, the program or the device is "
        "another than then",
        metric, score, *before, arguments.run);
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
  command->add_option("RUN", arguments->run, "Directory of the run")->required()->check(check_name);
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
                   "Set to evaluate on (default: test); validation is what the job left out of training")
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
