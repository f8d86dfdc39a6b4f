// Takes a run whose training has diverged back to its last checkpoint, with a lower learning rate
// (training.on_divergence: ROLL_BACK).
#pragma once

#include "engine/base/error.h"
#include "train/live/live_run.h"
#include "train/live/round_changes.h"
#include "train/live/run_checkpoints.h"

namespace arbalest::jobs {

inline constexpr int kMostRollbacks = 3;

// Goes back after `error`, of kind kDiverged, and tells the observers. The clock goes on. The checkpoint is written
// again with the new count and factor, so that a run that resumes from it has them, too. Returns false if the run ends
// here: status and message are set. `checkpoints`: null if the run has none.
bool roll_back(LiveRun& run, RoundChanges& changes, RunCheckpoints* checkpoints, const engine::Error& error);

}  // namespace arbalest::jobs
