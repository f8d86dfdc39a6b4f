// Trains models of layers on mini-batches: many learners, kept together by a scheme of synchronization.
#pragma once

#include "train/context/trainer.h"

namespace arbalest::jobs {

RunSummary train_graph(const JobOptions& job, const RunContext& context);
DryRun dry_run_graph(const JobOptions& job, const RunContext& context);
EvaluationResult evaluate_graph(const JobOptions& job, const ModelFile& model, const RunContext& context,
                                const EvaluationOptions& options);

inline const Trainer& graph_trainer() {
  static constexpr Trainer kTrainer{train_graph, dry_run_graph, evaluate_graph};
  return kTrainer;
}

}  // namespace arbalest::jobs
