// These functions train a job, try it out, and evaluate the model that a run of it has saved.
#pragma once

#include <string>

#include "options/job_options.h"
#include "train/context/run_context.h"
#include "train/context/trainer.h"

namespace arbalest::jobs {

// Trains until the target, the last epoch, a stop signal or divergence, and writes model.safetensors, and checkpoints
// if there is an output directory. A diverged or stopped run returns its summary like any other. Other failures are
// reported to the observers and then thrown as engine::Error.
RunSummary train(const JobOptions& job, const RunContext& context);

// Runs one round of training (of a sparse job: one epoch) and one evaluation of the whole test set. Writes nothing,
// calls no observer, ignores stop signals. Throws kDiverged if a loss is not finite.
DryRun dry_run(const JobOptions& job, const RunContext& context);

// Evaluates the model with the run's own job.txtpb, on as many runners as the job has learners. They run forward only:
// no gradient and no state of an optimizer takes memory. The result has the bits of the run's own evaluation. Throws
// kUsage if the run has no such set, or no classes and per_class is asked for, kCheckpoint if the model is unusable or
// its SHA-256 differs from `sha256` ("" if unknown), and kDiverged if its loss is not finite. Throws kData if more
// images cannot be read than the job's max_skipped allows.
EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context, const EvaluationOptions& options = {});

}  // namespace arbalest::jobs
