// Runs a job whose model needs no graph to be trained: JobOptions::sparse is set.
#pragma once

#include "jobs/run/run_observer.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

// train() and dry_run() (jobs/run/trainer.h) call these functions for sparse jobs. A run has no checkpoints: a signal
// ends it after the blocks or rows under way, and its present model is saved.
RunSummary train_sparse(const JobOptions& job, const RunContext& context);
DryRun dry_run_sparse(const JobOptions& job, const RunContext& context);

}  // namespace arbalest::jobs
