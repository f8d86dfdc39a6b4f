#include "train/scores/scores.h"

#include <algorithm>
#include <cmath>

#include "messages/text.h"

namespace arbalest::jobs {

Scores::Scores(const dataflow::Metrics& metrics, const dataflow::MetricSums& sums, std::int64_t examples) {
  for (const dataflow::Metric& metric : metrics) {
    std::optional<double> value = dataflow::value_of(metric, sums, examples);
    // The loss tells that the model has diverged; scores that follow from it have no value then.
    if (metric.form == dataflow::MetricForm::kRootOfMean && value && !std::isfinite(*value)) value.reset();
    scores_.push_back({metric.name, value});
  }
}

std::optional<double> Scores::value(std::string_view name) const {
  const auto score = std::ranges::find(scores_, name, &Score::name);
  return score == scores_.end() ? std::nullopt : score->value;
}

void Scores::set(std::string_view name, std::optional<double> value) {
  const auto score = std::ranges::find(scores_, name, &Score::name);
  if (score != scores_.end()) {
    score->value = value;
  } else {
    scores_.push_back({std::string(name), value});
  }
}

Scores training_scores(const dataflow::Metrics& metrics, const dataflow::MetricSums& sums, std::int64_t examples) {
  Scores scores(metrics, sums, examples);
  for (const dataflow::Metric& metric : metrics) {
    if (!metric.in_training) scores.set(metric.name, std::nullopt);
  }
  return scores;
}

ScoreOrder order_of(const dataflow::Metrics& metrics) {
  return {.smaller_is_better = dataflow::score_of(metrics).unit == dataflow::MetricUnit::kNumber};
}

std::string value_text(const dataflow::Metric& metric, double value, double limit) {
  return metric.unit == dataflow::MetricUnit::kFraction ? percent(value, limit) : loss_text(value);
}

}  // namespace arbalest::jobs
