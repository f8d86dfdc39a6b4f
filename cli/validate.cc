// arbalest validate JOB
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/job_arguments.h"

namespace arbalest::cli {

Command add_validate(CLI::App& program) {
  auto arguments = std::make_shared<JobArguments>();
  CLI::App* command = program.add_subcommand("validate", "Check a job file without running it");
  command->footer(
      "Example:\n"
      "  arbalest validate configs/lenet-mnist.txtpb --set learning_rate.base=0.1\n"
      "\n"
      "Checks the fields, the shapes of all layers, and that this machine has the devices. It does not\n"
      "check data files and free memory; 'arbalest train JOB --dry-run' does.\n"
      "\n" +
      std::string(kExitCodesHelp));
  add_job_arguments(*command, *arguments);
  return {command, [arguments] {
            log_warnings(load(*arguments).warnings);
            print_result(fmt::format("{}: valid\n", arguments->path));
            return kOk;
          }};
}

}  // namespace arbalest::cli
