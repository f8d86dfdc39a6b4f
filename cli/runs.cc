// arbalest runs [DIR]
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"
#include "report/run_list.h"

namespace arbalest::cli {

namespace {

constexpr const char* kDefault = "runs";

struct RunsArguments {
  std::string directory = kDefault;
  bool json = false;
};

int list(const RunsArguments& arguments) {
  std::error_code error;
  const bool is_missing = arguments.directory == kDefault && !std::filesystem::exists(kDefault, error);
  const auto runs = is_missing ? std::vector<jobs::ListedRun>() : jobs::list_runs(arguments.directory);
  if (arguments.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const jobs::ListedRun& run : runs) all.push_back(jobs::to_json(run));
    print_data(fmt::format("{}\n", all.dump(2)));
    return kOk;
  }
  for (const jobs::ListedRun& run : runs) {
    if (!run.problem.empty()) spdlog::warn("'{}': {}", run.directory.string(), run.problem);
  }
  if (runs.empty()) {
    print_result(fmt::format("no runs in '{}'\n", arguments.directory));
  } else {
    print_result(jobs::runs_table(runs));
  }
  return kOk;
}

}  // namespace

Command add_runs(CLI::App& program) {
  auto arguments = std::make_shared<RunsArguments>();
  CLI::App* command = program.add_subcommand("runs", "List the runs in a directory with their status and accuracy");
  command->footer(
      "Examples:\n"
      "  arbalest runs                 the runs in runs/\n"
      "  arbalest runs DIR --json      other runs, as JSON; also those of a bench\n"
      "\n"
      "A run that ended has the status target_reached, completed, stopped, diverged or failed. A run without\n"
      "a summary is running, or its process was killed.\n"
      "\n" +
      std::string(kExitCodesHelp));
  command->add_option("DIR", arguments->directory, "Directory of runs, or of one run (default: runs)")
      ->check(check_name);
  command->add_flag("--json", arguments->json, "Print JSON");
  return {command, [arguments] { return list(*arguments); }};
}

}  // namespace arbalest::cli
