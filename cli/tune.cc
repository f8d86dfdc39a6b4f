// arbalest tune JOB
#include <filesystem>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/environment.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "engine/error.h"
#include "jobs/export/atomic_file.h"
#include "jobs/study/tune_report.h"

namespace arbalest::cli {

namespace {

struct TuneArguments {
  JobArguments job;
  std::string output;
  std::string data_root;
  bool sweep = false;
  bool no_cache = false;
  bool json = false;
};

jobs::JobOptions load_with_bounds(JobArguments arguments) {
  jobs::JobOptions job = load(arguments);
  if (job.tuned) return job;
  arguments.overrides.push_back("learners.per_device.auto={}");
  return load(arguments);
}

// Fails before anything is measured.
void take_directory(const std::filesystem::path& directory) {
  if (directory.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) engine::fail(engine::ErrorKind::kUsage, "--output {}: {}", directory.string(), error.message());
  for (const char* file : {"tune.json", "tune.svg"}) {
    if (std::filesystem::exists(directory / file)) {
      engine::fail(engine::ErrorKind::kUsage, "'{}' is there already; choose another directory with --output",
                   (directory / file).string());
    }
  }
}

// Where a later run with `auto {}` begins. The answer is on its way to the user already, so nothing fails here.
void remember(const jobs::JobOptions& job, const jobs::TuneResult& result) {
  const auto cache = learner_cache();
  if (!cache) {
    spdlog::warn("neither XDG_CACHE_HOME nor HOME names a directory, so runs with 'auto {{}}' do not learn of this");
    return;
  }
  try {
    cache->remember(job, result.chosen, result.images_per_second);
    fmt::print(stderr, "remembered in '{}' for runs with learners {{ per_device {{ auto {{}} }} }}\n",
               cache->file_of(job).string());
  } catch (const engine::Error& error) {
    spdlog::warn("runs with 'auto {{}}' do not learn of this: {}", error.what());
  }
}

int tune(const TuneArguments& arguments) {
  const jobs::JobOptions job = load_with_bounds(arguments.job);
  log_warnings(job.warnings);
  const std::filesystem::path directory = arguments.output;
  take_directory(directory);
  jobs::RunContext context;
  context.data_root = data_root(arguments.data_root);
  const jobs::TuneResult result = jobs::tune(job, context, {.sweep = arguments.sweep},
                                             [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  const std::string json = jobs::to_json(result).dump(2) + "\n";
  if (!directory.empty()) {
    jobs::write_file(directory / "tune.json", json);
    jobs::write_file(directory / "tune.svg", jobs::to_svg(result));
  }
  fmt::print("{}", arguments.json ? json : jobs::to_text(result));
  if (!arguments.no_cache) remember(job, result);
  return kOk;
}

}  // namespace

Command add_tune(CLI::App& program) {
  auto arguments = std::make_shared<TuneArguments>();
  CLI::App* command =
      program.add_subcommand("tune", "Find how many learners of each device train a job fastest; keeps no model");
  command->footer(
      "Examples:\n"
      "  arbalest tune configs/lenet-mnist.txtpb\n"
      "  arbalest tune configs/lenet-mnist.txtpb --sweep --output tuning   # tuning/tune.json and tune.svg\n"
      "\n"
      "What it finds can be written into the job: learners { per_device { fixed: 4 } }.\n"
      "With learners { per_device { auto {} } } a training run searches by itself. It begins where a\n"
      "tune of the same model, data, mini-batch, precision and devices has ended, by the same version:\n"
      "that is remembered below $XDG_CACHE_HOME (else ~/.cache) in arbalest/learners/.\n");
  add_job_arguments(*command, arguments->job);
  command->add_option("--output", arguments->output, "Directory for tune.json and tune.svg; else nothing is kept")
      ->type_name("DIR")
      ->check(check_name);
  add_data_root(*command, arguments->data_root);
  command->add_flag("--sweep", arguments->sweep, "Measure every number, and by how much the chosen one is slower");
  command->add_flag("--no-cache", arguments->no_cache, "Do not remember what was found");
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return tune(*arguments); }};
}

}  // namespace arbalest::cli
