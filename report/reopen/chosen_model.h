// Finds the file of a run's model: its final model, its best one, or that of a checkpoint.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/best_model.h"
#include "report/resume_point.h"
#include "report/run_directory.h"

namespace arbalest::jobs {

// Returns the full path of `run`, the directory of a run or of one of its checkpoints. Throws kUsage if it is neither.
std::filesystem::path find_run(const std::filesystem::path& run);

// Whether `run`, as find_run() returns it, is a checkpoint, which its manifest verifies.
bool is_checkpoint(const std::filesystem::path& run);

struct ChosenModel {
  std::string path;
  std::string sha256;                   // "" if it is not known
  std::optional<SavedSummary> summary;  // of the run, if this is its final model
  std::optional<BestModel> best;        // if this is its best one
};

// `run`: as find_run() returns it. `checkpoint`: "" for the final model; "best", "last", or the number of a checkpoint.
// Throws kCheckpoint, with the reason and what to do, if there is no such model, and kUsage for a `checkpoint` of a run
// that saves none. `warn` is told if the run of a final model diverged or failed.
ChosenModel choose_model(const std::filesystem::path& run, const std::string& checkpoint, const Tell& warn);

}  // namespace arbalest::jobs
