// Finds the checkpoint that a diverged run goes back to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "checkpoint/saved_run.h"

namespace arbalest::jobs {

// Whether every number of the state that training goes on from is finite, in vectors and sums. Reads learners whose
// vectors are not here from SavedRun::source, one at a time.
bool is_finite(const SavedRun& saved);

struct RollbackPoint {
  SavedRun saved;              // with the model
  std::filesystem::path path;  // directory of the checkpoint
};

// Tells which checkpoints are too late to go back to, if there is an earlier one.
struct RollbackLimits {
  std::uint64_t before = std::numeric_limits<std::uint64_t>::max();  // more mini-batches: within the rise of the loss
  std::optional<std::uint64_t> last = {};  // the run went back there before, and has diverged again
};

// The newest checkpoint below `checkpoints` that verifies, is_finite(), is not too late and is a roll-back point, if
// any is one (saved_run.h); none if there is no such checkpoint. Newer ones are renamed, so that no run goes on from
// them: damaged ones as by newest_checkpoint(), the others to `<number>.not-finite` or `<number>.diverged`. `warn` is
// told each. Throws kCheckpoint for a newer one that cannot be read, and passes on errors of renaming.
std::optional<RollbackPoint> find_rollback_point(const std::filesystem::path& checkpoints, const RollbackLimits& limits,
                                                 const std::function<void(const std::string&)>& warn);

}  // namespace arbalest::jobs
