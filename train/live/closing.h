// The end of a run: its model is saved and evaluated, and its observers get the summary.
#pragma once

#include <exception>

#include "train/live/live_run.h"
#include "train/live/run_checkpoints.h"
#include "train/live/skip_watch.h"

namespace arbalest::jobs {

// Saves the model, waits for the checkpoint that is being written (`checkpoints` may be null), and evaluates the model
// unless its epoch's end has done so. Saves before evaluating, so that a second signal does not cost the model. Throws
// SkipWatch's error if too many images of an evaluated set cannot be read.
void save_and_evaluate(LiveRun& run, RunCheckpoints* checkpoints, SkipWatch& skips);

// Completes the summary and gives it to all observers, even if one fails; then throws the first error.
void finish_run(LiveRun& run);
// Finishes a run that has failed with `error`. An observer that fails itself (the disk is full) must not hide why the
// run failed.
void fail_run(LiveRun& run, const std::exception& error) noexcept;

}  // namespace arbalest::jobs
