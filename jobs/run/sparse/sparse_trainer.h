// Runs a job whose model is logistic regression over sparse rows.
#pragma once

#include "jobs/run/run_observer.h"
#include "jobs/run/trainer.h"

namespace arbalest::jobs {

// As train() and dry_run() (jobs/run/trainer.h), which call these. There are no checkpoints: a signal ends the run
// after the blocks or rows under way, and the model that it has is saved.
RunSummary train_sparse(const JobOptions& job, const RunContext& context);
DryRun dry_run_sparse(const JobOptions& job, const RunContext& context);

}  // namespace arbalest::jobs
