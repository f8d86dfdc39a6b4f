// Finds the checkpoint that a diverged run goes back to.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "jobs/checkpoint/saved_run.h"

namespace arbalest::jobs {

// Whether every number of the state that training goes on from is finite, in vectors and sums.
bool is_finite(const SavedRun& saved);

struct RollbackPoint {
  SavedRun saved;              // with the model
  std::filesystem::path path;  // directory of the checkpoint
};

// The newest checkpoint below `checkpoints` that verifies and is_finite(); none if there is no such checkpoint. Newer
// ones are renamed, so that no run goes on from them: damaged ones as by newest_checkpoint(), the others to
// `<number>.not-finite`. `warn` is told each. Throws kCheckpoint for a newer one that cannot be read, and passes on
// errors of renaming.
std::optional<RollbackPoint> find_rollback_point(const std::filesystem::path& checkpoints,
                                                 const std::function<void(const std::string&)>& warn);

}  // namespace arbalest::jobs
