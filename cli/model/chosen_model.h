// The run that a command is about, and the one of its models that it uses.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "report/reopen/chosen_model.h"

namespace arbalest::cli {

using jobs::ChosenModel;

struct RunArguments {
  std::string run;                   // the directory of a run, or of one of its checkpoints
  std::string checkpoint;            // "": the final model
  std::vector<std::string> devices;  // empty: those of the run
};

// Adds RUN and --checkpoint. `arguments` must outlive the parsing.
void add_model_arguments(CLI::App& command, RunArguments& arguments);
// Adds them and --devices.
void add_run_arguments(CLI::App& command, RunArguments& arguments);

// Replaces RUN by its full path. Throws kUsage unless it is the directory of a run or checkpoint.
void find_run(RunArguments& arguments);

// Whether RUN is a checkpoint of a run. Call find_run() before.
bool is_checkpoint(const RunArguments& arguments);

// The file that the arguments choose (jobs::choose_model). Logs warnings. Call find_run() before.
ChosenModel choose_model(const RunArguments& arguments);

}  // namespace arbalest::cli
