#include "train/train.h"

#include "train/graph/graph_trainer.h"
#include "train/sparse/sparse_trainer.h"

namespace arbalest::jobs {

namespace {

const Trainer& trainer_of(const JobOptions& job) { return job.sparse ? sparse_trainer() : graph_trainer(); }

}  // namespace

RunSummary train(const JobOptions& job, const RunContext& context) { return trainer_of(job).train(job, context); }

DryRun dry_run(const JobOptions& job, const RunContext& context) { return trainer_of(job).dry_run(job, context); }

EvaluationResult evaluate_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                              const RunContext& context, const EvaluationOptions& options) {
  return trainer_of(job).evaluate(job, {model_path, sha256}, context, options);
}

}  // namespace arbalest::jobs
