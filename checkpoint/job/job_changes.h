// Compares the job of a checkpoint with the job that is to go on from it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/run_state.h"
#include "options/job_options.h"

namespace arbalest::jobs {

// Throws kCheckpoint with all fields that differ, unless a resumed run may change them: name, learners, devices,
// checkpoint, what ends a run (training.max_epochs, target_accuracy, patience_epochs, min_improvement, max_minutes),
// restarts of the learning rate that are still to come, and what is done about failures (training.on_divergence with
// its fields, synchronization.compare_rounds, on_unreadable and max_skipped of
// the decoding).
// `saved_text`: the JobOptions::resolved_text of the checkpoint, `state`: its state, `settings`: the job's
// continuation().
void check_same_job(const std::string& saved_text, const RunState& state, const JobOptions& job,
                    const std::vector<std::string>& settings);

// The target accuracy of the checkpoint's job.
std::optional<double> target_of(const std::string& saved_text);

// Whether the job's `learners` or `devices` differ from those of the checkpoint.
bool asks_for_other_learners(const std::string& saved_text, const JobOptions& job);

}  // namespace arbalest::jobs
