// A run that goes on keeps the precision that it has chosen. With another training.max_epochs it keeps what its job
// left to defaults that follow from it. A schedule of the learning rate that was planned up to the former end starts
// anew there.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/run_state.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// The settings ("learning_rate.cosine.epochs=10", as for --set) with which `job` must be read to go on from a
// checkpoint in this state; none if it can stay as it is. They say all that the run has kept or got, so a new run of
// the job with these settings trains to the same bytes:
//   - A field that the job leaves out, and whose default follows from training.max_epochs, has the checkpoint's value.
//   - A job with precision AUTO has the checkpoint's precision.
//   - If the schedule of the learning rate has an end (polynomial, cosine, one_cycle) that was not before the
//     checkpoint's training.max_epochs and comes before that of the job, there is a restart at that end, which takes
//     the epochs that were added. A job that names other restarts than the checkpoint has gets none.
// `saved_text`: the JobOptions::resolved_text of the checkpoint.
std::vector<std::string> continuation(const std::string& saved_text, const RunState& state, const JobOptions& job);

// `given` without the settings whose fields `more` sets, and then `more`: so lists of `more` replace those of `given`.
std::vector<std::string> settings_with(const std::vector<std::string>& given, const std::vector<std::string>& more);

// An upper bound of the epochs that a run in this state has trained.
double most_epochs_trained(const RunState& state);

}  // namespace arbalest::jobs
