// Tells from a checkpoint whether its run has ended before its last epoch.
#pragma once

#include <string>

#include "jobs/checkpoint/run_state.h"
#include "jobs/options/job_options.h"

namespace arbalest::jobs {

// Whether so many seconds of training are training.max_minutes.
bool minutes_are_over(const TrainingOptions& training, double training_seconds);

// "2 epochs without an improvement (training.patience_epochs)"; training.patience_epochs must be set.
std::string patience_text(const TrainingOptions& training);

// Why a run in this state trains no further although it has epochs left; "" if it does.
std::string early_end_text(const TrainingOptions& training, const RunState& state);

}  // namespace arbalest::jobs
