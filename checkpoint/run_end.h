// Tells from a checkpoint whether its run has ended before its last epoch.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/run_state.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Whether so many seconds of training are training.max_minutes.
bool minutes_are_over(const TrainingOptions& training, double training_seconds);

// "2 epochs without an improvement (training.patience_epochs)"; training.patience_epochs must be set.
std::string patience_text(const TrainingOptions& training);

// The limits of a job that a run has reached.
struct ReachedLimits {
  int epochs = 0;         // epochs that the run has trained
  bool target = false;    // training.target_accuracy
  bool patience = false;  // training.patience_epochs
  bool minutes = false;   // training.max_minutes
};
// Those that its state tells: all but the target.
ReachedLimits reached_limits(const TrainingOptions& training, const RunState& state);

// The settings, as for --set, with which the run trains at least one more epoch: "training.max_epochs=20".
std::vector<std::string> settings_to_go_on(const TrainingOptions& training, const ReachedLimits& reached);

// Why a run in this state trains no further although it has epochs left; "" if it does.
std::string early_end_text(const TrainingOptions& training, const RunState& state);

}  // namespace arbalest::jobs
