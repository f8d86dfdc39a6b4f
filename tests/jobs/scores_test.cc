// The values of metrics that reports have.
#include "train/scores/scores.h"

#include "tests/jobs/job_text.h"
#include "tests/support/catch.h"
#include "tests/support/metrics.h"
#include "train/live/model_scores.h"

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

TEST_CASE("scores: a resumed run knows the best scores that it had before, on either set") {
  const ScoreHistory history{
      .recent = {0.25, 0.5}, .best_test = 0.625, .best_validation = 0.75, .improved = 0.5, .epochs_since = 3};
  for (const bool validates : {false, true}) {
    CAPTURE(validates);
    const std::string data = validates ? "data { digits {} validation { fraction: 0.1 } }" : "data { digits {} }";
    ModelScores scores(parse(changed("data { digits {} }", data), {"training.patience_epochs=3"}));
    CHECK_FALSE(scores.best_score().has_value());
    CHECK_FALSE(scores.patience_is_over());
    scores.continue_from(history);
    CHECK(scores.best_score() == (validates ? 0.75 : 0.625));
    CHECK(scores.patience_is_over());
    RunSummary summary;
    scores.write_to(summary);
    CHECK(summary.best_test == (validates ? std::nullopt : std::optional(0.625)));
    CHECK(summary.best_validation == (validates ? std::optional(0.75) : std::nullopt));
    CHECK(scores.history().best_test == 0.625);
    CHECK(scores.history().best_validation == 0.75);
    CHECK(scores.history().recent == history.recent);
  }
}

}  // namespace arbalest::jobs
