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
  bool json = false;
};

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
  const jobs::JobOptions job = jobs::load_for_evaluation((run / jobs::kJobFile).string(), arguments.devices);
  log_warnings(job.warnings);
  jobs::RunContext context;
  context.data_root = data_root(arguments.data_root);
  const std::optional<jobs::SavedSummary> saved = jobs::read_summary(run);
  const std::string sha256 = saved ? saved->model_sha256 : "";
  if (sha256.empty()) {
    spdlog::warn("'{}' was cut short and has no hash of its model: whether that was changed cannot be told",
                 arguments.run);
  }
  const auto set = arguments.split == "test" ? jobs::EvaluationSet::kTest : jobs::EvaluationSet::kValidation;
  const jobs::EvaluationResult result =
      jobs::evaluate_run(job, (run / jobs::kModelFile).string(), sha256, context, set);
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
      "\n"
      "On the devices of the run the result is the run's to the last digit; on another kind of device\n"
      "the last digits may differ.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("RUN", arguments->run, "Directory of the run")->required()->check(check_name);
  command
      ->add_option("--devices", arguments->devices,
                   "Where to evaluate, as in a job: cpu, cpu:0-1, cuda:0; may be given several times. Else on the "
                   "run's devices, or on what is here if those are not")
      ->type_name("NAME")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--split", arguments->split,
                   "test, or validation: the examples that the run's job left out of training; else test")
      ->type_name("SPLIT")
      ->check(CLI::IsMember({"test", "validation"}));
  add_data_root(*command, arguments->data_root);
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return evaluate(*arguments); }};
}

}  // namespace arbalest::cli
