#include "train/sparse/sparse_metrics.h"

#include <algorithm>
#include <vector>

#include "dataflow/layers/outputs/classification.h"
#include "engine/base/error.h"

namespace arbalest::jobs {

dataflow::Metrics sparse_metrics(const JobOptions& job) {
  if (job.graph != nullptr) return job.graph->metrics();
  const std::vector<engine::Shape> inputs = {{1, 2}, {1}};  // logits and label of one row
  dataflow::Metrics metrics = dataflow::SoftmaxCrossEntropyLayer().metrics(inputs);
  for (dataflow::Metric& metric : dataflow::AccuracyLayer().metrics(inputs)) {
    if (!metric.is_score) continue;  // all labels are among the best five of two
    metric.sum += engine::kLossSum + 1;
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

Scores scores_of_means(const dataflow::Metrics& metrics, std::initializer_list<double> means) {
  dataflow::MetricSums sums;
  ARBALEST_CHECK(means.size() <= sums.values.size());
  std::ranges::copy(means, sums.values.begin());
  return {metrics, sums, 1};
}

}  // namespace arbalest::jobs
