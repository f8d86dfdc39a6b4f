// Builds what observers are told about a run while it trains: its progress within an epoch, and each epoch.
#pragma once

#include <cstdint>

#include "train/live/live_run.h"

namespace arbalest::jobs {

// sum / count; 0 for a count of 0.
double mean_of(double sum, std::int64_t count);

// Progress of the epoch under way, which began at `epoch_start`; `training_start`: when this process began to train.
// The state must have examples of this epoch, and more than earlier processes of the run.
RunProgress progress_row(const LiveRun& run, double elapsed_seconds, LiveRun::Clock::time_point epoch_start,
                         LiveRun::Clock::time_point training_start);

// The epoch that has ended and was evaluated. `learning_rate`: in its last round.
EpochRow epoch_row(const LiveRun& run, int epoch, double learning_rate, double elapsed_seconds,
                   double evaluation_seconds);

}  // namespace arbalest::jobs
