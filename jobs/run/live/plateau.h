// Drops of the learning rate where scores stop improving: learning_rate.plateau of a job, after PyTorch's
// ReduceLROnPlateau (torch/optim/lr_scheduler.py).
#pragma once

#include <optional>

#include "jobs/checkpoint/run_state.h"
#include "jobs/run/live/live_run.h"
#include "scheduler/learning_rate.h"

namespace arbalest::jobs {

// Counts an epoch that ended with this score; `is_judged`: false within the warm-up. Returns whether the learning rate
// drops, by the factor that `state` has then.
bool count_epoch(const scheduler::Plateau& rule, std::optional<double> score, bool smaller_is_better, bool is_judged,
                 PlateauState& state);

// Counts the epoch that has ended and was evaluated, if the job has this schedule. At a drop, lowers the learning rate
// and tells the observers.
void follow_plateau(LiveRun& run, int epoch);

}  // namespace arbalest::jobs
