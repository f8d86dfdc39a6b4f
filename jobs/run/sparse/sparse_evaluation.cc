#include "jobs/run/sparse/sparse_evaluation.h"

#include "engine/error.h"
#include "jobs/run/sparse/sparse_model.h"

namespace arbalest::jobs {

EvaluationResult evaluate_sparse_run(const JobOptions& job, const std::string& model_path, const std::string& sha256,
                                     const std::string& data_root, const EvaluationOptions& options) {
  if (options.set == EvaluationSet::kValidation) {
    engine::fail(engine::ErrorKind::kUsage, "a job with sparse rows has no validation set; leave --split out");
  }
  if (options.per_class) {
    engine::fail(engine::ErrorKind::kUsage, "--per-class is for models of layers; leave it out");
  }
  const scheduler::LinearModel model = read_sparse_model(job, model_path, sha256);
  const dataflow::SparseRows rows = load_sparse_rows(*job.sparse, data_root, SparseSplit::kTest);
  const scheduler::LogisticScores scores = scheduler::evaluate(model, rows);
  return {.set = options.set,
          .loss = scores.loss,
          .accuracy = scores.accuracy,
          .top5_accuracy = {},
          .rmse = {},
          .examples = rows.rows()};
}

}  // namespace arbalest::jobs
