#include "dataflow/layers/metrics.h"

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace arbalest::dataflow {

const Metric& score_of(const Metrics& metrics) {
  const auto score = std::ranges::find_if(metrics, &Metric::is_score);
  ARBALEST_CHECK(score != metrics.end());
  return *score;
}

std::optional<double> value_of(const Metric& metric, const MetricSums& sums, std::int64_t examples) {
  if (metric.is_trivial) return std::nullopt;
  const double sum = sums.values[static_cast<std::size_t>(metric.sum)];
  const double mean = examples == 0 ? 0.0 : sum / static_cast<double>(examples);
  return metric.form == MetricForm::kRootOfMean ? std::sqrt(mean) : mean;
}

}  // namespace arbalest::dataflow
