// The values of metrics that reports have.
#include "train/scores/scores.h"

#include "tests/support/catch.h"
#include "tests/support/metrics.h"

namespace arbalest::jobs {

TEST_CASE("scores: training has no value of a metric that its sums do not tell") {
  dataflow::Metrics metrics = tests::ratings_metrics();
  const dataflow::MetricSums sums{{8.0}};
  CHECK(training_scores(metrics, sums, 2).value("rmse") == 2.0);
  metrics[1].in_training = false;
  const Scores training = training_scores(metrics, sums, 2);
  CHECK(training.loss() == 4.0);
  CHECK_FALSE(training.value("rmse").has_value());
  CHECK(Scores(metrics, sums, 2).value("rmse") == 2.0);  // of an evaluation
}

}  // namespace arbalest::jobs
