// The metrics of a classifier and of a model of ratings, as their layers name them.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "dataflow/layers/outputs/classification.h"
#include "dataflow/layers/outputs/squared_error.h"

namespace arbalest::tests {

inline dataflow::Metrics joined(dataflow::Metrics metrics, const dataflow::Metrics& others, int first_sum) {
  for (dataflow::Metric metric : others) {
    metric.sum += first_sum;
    metrics.push_back(metric);
  }
  return metrics;
}

inline dataflow::Metrics classifier_metrics(std::int64_t classes = 10,
                                            const dataflow::AccuracyLayer& accuracy = dataflow::AccuracyLayer()) {
  const std::vector<engine::Shape> inputs = {{1, classes}, {1}};
  return joined(dataflow::SoftmaxCrossEntropyLayer().metrics(inputs), accuracy.metrics(inputs), 1);
}

inline dataflow::Metrics ratings_metrics() {
  const std::vector<engine::Shape> inputs = {{1, 1}, {1}};
  return dataflow::SquaredErrorLayer().metrics(inputs);
}

}  // namespace arbalest::tests
