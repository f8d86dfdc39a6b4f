// The run that a command is about, and the one of its models that it uses.
#pragma once

#include <string>
#include <vector>

#include <spdlog/spdlog.h>
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

// Returns read(model) for the model that the arguments choose (jobs::read_chosen). Logs warnings. Call find_run()
// before.
template <typename Read>
auto read_chosen(const RunArguments& arguments, const Read& read) {
  return jobs::read_chosen(
      arguments.run, arguments.checkpoint, [](const std::string& text) { spdlog::warn("{}", text); }, read);
}

}  // namespace arbalest::cli
