// The beginning of a run, or of its continuation from a checkpoint.
#pragma once

#include "train/live/live_run.h"
#include "train/live/run_checkpoints.h"

namespace arbalest::jobs {

// Opens the session, with the weights that a new run starts from.
void open_run(LiveRun& run);
// Sets the session, the state and the clock to those of the checkpoint, and frees its vectors.
void resume_run(LiveRun& run, SavedRun& saved);
// Tells the observers that the run starts.
void announce_run(LiveRun& run);
// Makes best.safetensors the best model until here (take_over_best_model). `checkpoints` may be null.
void take_over_best(LiveRun& run, RunCheckpoints* checkpoints);

}  // namespace arbalest::jobs
