// Drops of the learning rate where scores stop improving: learning_rate.plateau of a job, after PyTorch's
// ReduceLROnPlateau (torch/optim/lr_scheduler.py).
#pragma once

#include <optional>

#include "checkpoint/run_state.h"
#include "scheduler/replicas/learning_rate.h"
#include "train/live/live_run.h"

namespace arbalest::jobs {

// Counts an epoch that ended with this score; `is_judged`: false within the warm-up. Returns whether the learning rate
// drops, by the factor that `state` has then.
bool count_epoch(const scheduler::Plateau& rule, std::optional<double> score, ScoreOrder order, bool is_judged,
                 PlateauState& state);

// Counts the epoch that has ended and was evaluated, if the job has this schedule. At a drop, lowers the learning rate
// and tells the observers. A drop after the last epoch is not told, because nothing is trained with it; a run that goes
// on from there with more epochs has it.
void follow_plateau(LiveRun& run, int epoch, bool is_last);

}  // namespace arbalest::jobs
