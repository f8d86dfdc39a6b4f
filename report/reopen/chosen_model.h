// Finds the file of a run's model: its final model, its best one, or that of a checkpoint.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/best_model.h"
#include "engine/base/error.h"
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
ChosenModel choose_model(const std::filesystem::path& run, const std::string& checkpoint, const Warn& warn);

// Returns read(model) for the chosen model. A run that goes on may replace its best model after its hash has been read
// and before its file is: `read` then throws kCheckpoint, and is called again with the new one.
template <typename Read>
auto read_chosen(const std::filesystem::path& run, const std::string& checkpoint, const Warn& warn, const Read& read) {
  for (;;) {
    const ChosenModel model = choose_model(run, checkpoint, warn);
    try {
      return read(model);
    } catch (const engine::Error& error) {
      const bool was_replaced = model.best && best_model_in(run) != model.best;
      if (error.kind() != engine::ErrorKind::kCheckpoint || !was_replaced) throw;
    }
  }
}

}  // namespace arbalest::jobs
