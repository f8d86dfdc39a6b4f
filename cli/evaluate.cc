// arbalest evaluate RUN
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "jobs/report/json.h"
#include "jobs/report/run_directory.h"
#include "jobs/report/text.h"
#include "jobs/run/trainer.h"

namespace arbalest::cli {

namespace {

struct EvaluateArguments {
  std::string run;
  std::string data_root;
  bool json = false;
};

int evaluate(const EvaluateArguments& arguments) {
  const std::filesystem::path run = arguments.run;
  std::error_code error;
  if (!std::filesystem::exists(run / jobs::kJobFile, error)) {
    engine::fail(engine::ErrorKind::kUsage, "'{}' is not the directory of a run: {}", arguments.run,
                 error ? error.message() : fmt::format("it has no {}", jobs::kJobFile));
  }
  const jobs::JobOptions job = load({.path = (run / jobs::kJobFile).string(), .overrides = {}});
  jobs::RunContext context;
  context.data_root = data_root(arguments.data_root);
  const std::string sha256 = jobs::saved_model_sha256(run);
  if (sha256.empty()) {
    spdlog::warn("'{}' was cut short and has no hash of its model: whether that was changed cannot be told",
                 arguments.run);
  }
  const jobs::EvaluationResult result = jobs::evaluate_run(job, (run / jobs::kModelFile).string(), sha256, context);
  if (arguments.json) {
    fmt::print("{}\n", jobs::to_json(result).dump(2));
  } else {
    fmt::print("test_accuracy {}\ntest_loss {}\nexamples {}\n", result.test_accuracy,
               jobs::unsigned_nan(result.test_loss), result.examples);
  }
  return kOk;
}

}  // namespace

Command add_evaluate(CLI::App& program) {
  auto arguments = std::make_shared<EvaluateArguments>();
  CLI::App* command = program.add_subcommand("evaluate", "Measure the saved model of a run on its test set");
  command->footer("Example:\n  arbalest evaluate runs/lenet-digits-20250131-142530");
  command->add_option("RUN", arguments->run, "Directory of the run")->required()->check(check_name);
  add_data_root(*command, arguments->data_root);
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return evaluate(*arguments); }};
}

}  // namespace arbalest::cli
