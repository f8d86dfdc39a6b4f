#include "train/sparse/sparse_trainer.h"

#include <string>
#include <utility>
#include <vector>

#include "dataflow/expected_tensors.h"
#include "engine/base/error.h"
#include "train/sparse/factorization_method.h"
#include "train/sparse/factorization_model.h"
#include "train/sparse/memory_advice.h"
#include "train/sparse/sparse_metrics.h"
#include "train/sparse/sparse_model.h"
#include "train/weights/saved_model.h"

namespace arbalest::jobs {

using engine::ErrorKind;

namespace {

SparseTest score_logistic(const JobOptions& job, const ModelFile& file, const std::string& data_root) {
  const scheduler::LinearModel model = read_sparse_model(job, file.path, file.sha256);
  const dataflow::SparseRows rows = load_sparse_rows(*job.sparse, data_root, SparseSplit::kTest);
  const scheduler::LogisticScores scores = scheduler::evaluate(model, rows);
  return {.scores = scores_of_means(sparse_metrics(job), {scores.loss, scores.accuracy}), .rows = rows.rows()};
}

SparseTest score_ratings(const JobOptions& job, const ModelFile& file, const std::string& data_root,
                         std::vector<std::string>& warnings) {
  const std::vector<dataflow::NamedTensor> tensors = read_finite_model(file.path, file.sha256);
  std::vector<dataflow::ExpectedTensor> expected;
  for (const dataflow::NamedTensor& tensor : initial_tensors(job)) expected.push_back({tensor.name, tensor.shape});
  try {
    dataflow::check_tensors(tensors, expected);
  } catch (const engine::Error& error) {
    engine::fail(error.kind(), "'{}' does not hold the model of its job.txtpb: {}", file.path, error.what());
  }
  return score_factorization(job, to_model(tensors),
                             load_rating_list(job, data_root, dataflow::Split::kTest, warnings));
}

}  // namespace

EvaluationResult evaluate_sparse(const JobOptions& job, const ModelFile& model, const RunContext& context,
                                 const EvaluationOptions& options) {
  if (options.set == EvaluationSet::kValidation) {
    engine::fail(ErrorKind::kUsage, "a job with this scheme has no validation set; leave --split out");
  }
  if (options.per_class) {
    engine::fail(ErrorKind::kUsage, "--per-class is for models of layers with classes; leave it out");
  }
  EvaluationResult result;
  result.set = options.set;
  result.metrics = sparse_metrics(job);
  SparseTest test;
  with_memory_advice(job, [&] {
    test = job.graph != nullptr ? score_ratings(job, model, context.data_root, result.warnings)
                                : score_logistic(job, model, context.data_root);
  });
  result.scores = std::move(test.scores);
  result.examples = test.rows;
  return result;
}

}  // namespace arbalest::jobs
