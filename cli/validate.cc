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
      "Checks the fields, the shapes of all layers, and the devices against those of this machine. Data\n"
      "files and free memory are not looked at: 'arbalest train JOB --dry-run' does that, too.");
  add_job_arguments(*command, *arguments);
  return {command, [arguments] {
            log_warnings(load(*arguments).warnings);
            fmt::print("{}: valid\n", arguments->path);
            return kOk;
          }};
}

}  // namespace arbalest::cli
