#include "cli/model/chosen_model.h"

#include "cli/job_arguments.h"

namespace arbalest::cli {

void add_model_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("RUN", arguments.run, "Directory of the run, or of one of its checkpoints")
      ->required()
      ->check(check_name);
  command
      .add_option("--checkpoint", arguments.checkpoint,
                  "Model to take instead of the final one: best, last (the newest checkpoint), or the number of a "
                  "checkpoint")
      ->type_name("best|last|N")
      ->check(check_name);
}

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  add_model_arguments(command, arguments);
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

void find_run(RunArguments& arguments) { arguments.run = jobs::find_run(arguments.run).string(); }

bool is_checkpoint(const RunArguments& arguments) { return jobs::is_checkpoint(arguments.run); }

}  // namespace arbalest::cli
