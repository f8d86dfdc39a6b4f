// The run that a command is about, and the one of its models that it uses.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "jobs/checkpoint/best_model.h"
#include "jobs/report/run_directory.h"

namespace arbalest::cli {

struct RunArguments {
  std::string run;                   // the directory of a run, or of one of its checkpoints
  std::string checkpoint;            // "": the final model
  std::vector<std::string> devices;  // empty: those of the run
};

// Adds RUN, --checkpoint and --devices. `arguments` must outlive the parsing.
void add_run_arguments(CLI::App& command, RunArguments& arguments);

// Replaces RUN by its full path. Throws kUsage unless it is the directory of a run or checkpoint.
void find_run(RunArguments& arguments);

// Whether RUN is a checkpoint of a run, which its manifest verifies. Call find_run() before.
bool is_checkpoint(const RunArguments& arguments);

struct ChosenModel {
  std::string path;
  std::string sha256;                         // "" if it is not known
  std::optional<jobs::SavedSummary> summary;  // of the run, if this is its final model
  std::optional<jobs::BestModel> best;        // if this is its best one
};

// The file that the arguments choose. Throws kCheckpoint, with the reason and what to do, if there is none. Call
// find_run() before.
ChosenModel choose_model(const RunArguments& arguments);

}  // namespace arbalest::cli
