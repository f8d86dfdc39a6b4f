// Reasons to end a run before its last epoch.
#pragma once

#include "train/live/live_run.h"

namespace arbalest::jobs {

// Returns what this process asks for: a stop at a signal, and, on rank 0, an end after training.max_minutes.
// `epoch_seconds`: of training in the epoch under way.
Requests end_requests(const LiveRun& run, double epoch_seconds);

// Whether nothing is trained after this epoch, which has ended and was evaluated. `reached`: whether the target is.
bool is_last_epoch(const LiveRun& run, int epoch, bool reached);

// Ends the run before its next epoch if the target is reached, which an earlier process of the run may have done, or if
// the score has not improved for too long: sets status and message. Returns whether it has ended.
bool ends_before_epoch(LiveRun& run);
// Tells in the message of a resumed run that it had trained more than training.max_epochs before, and trains nothing.
void end_beyond_last_epoch(LiveRun& run);
// Sets status and message of a run whose epoch was cut short by a signal or by training.max_minutes.
void end_within_epoch(LiveRun& run);

}  // namespace arbalest::jobs
