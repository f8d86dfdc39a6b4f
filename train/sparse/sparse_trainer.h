// Trains models row by row, without mini-batches: JobOptions::sparse is set.
#pragma once

#include "train/context/trainer.h"

namespace arbalest::jobs {

// A run has no checkpoints: a signal ends it after the blocks or rows under way, and its present model is saved.
RunSummary train_sparse(const JobOptions& job, const RunContext& context);
DryRun dry_run_sparse(const JobOptions& job, const RunContext& context);
// Throws kUsage for a validation set and for scores by class.
EvaluationResult evaluate_sparse(const JobOptions& job, const ModelFile& model, const RunContext& context,
                                 const EvaluationOptions& options);

inline const Trainer& sparse_trainer() {
  static constexpr Trainer kTrainer{train_sparse, dry_run_sparse, evaluate_sparse};
  return kTrainer;
}

}  // namespace arbalest::jobs
