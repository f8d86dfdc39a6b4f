// The values of a model's metrics on one set of examples, by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/score_order.h"
#include "dataflow/layers/metrics.h"

namespace arbalest::jobs {

struct Score {
  std::string name;             // Metric::name
  std::optional<double> value;  // none if the metric is trivial, or a root is not finite
};

// It keeps the order of the metrics, and is empty if the set was not evaluated.
class Scores {
 public:
  Scores() = default;
  Scores(const dataflow::Metrics& metrics, const dataflow::MetricSums& sums, std::int64_t examples);

  bool empty() const noexcept { return scores_.empty(); }
  auto begin() const noexcept { return scores_.begin(); }
  auto end() const noexcept { return scores_.end(); }

  // None if there is no score of that name, or if it has no value.
  std::optional<double> value(std::string_view name) const;
  double loss() const { return value("loss").value_or(0.0); }
  // Sets the value of a score, which is appended if there is none of that name.
  void set(std::string_view name, std::optional<double> value);

 private:
  std::vector<Score> scores_;
};

// Scores of training. Its sums do not tell every metric (Metric::in_training); the others have no value.
Scores training_scores(const dataflow::Metrics& metrics, const dataflow::MetricSums& sums, std::int64_t examples);

// Tells how values of dataflow::score_of(metrics) compare.
ScoreOrder order_of(const dataflow::Metrics& metrics);

// The value for people: "98.12 %" or "0.8412". `limit`: as for percent().
std::string value_text(const dataflow::Metric& metric, double value, double limit = 1.0);

}  // namespace arbalest::jobs
