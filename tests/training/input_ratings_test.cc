// Whole runs on ratings: the error of matrix factorization comes near the noise, with any number of learners.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/ratings_writer.h"
#include "tests/training/whole_run.h"
#include "train/session/session.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

jobs::JobOptions ratings_job(const TemporaryDirectory& directory, std::vector<std::string> overrides) {
  overrides.push_back("data.ratings.directory=" + (directory / "ratings").string());
  return load("matrix-factorization-ratings.txtpb", overrides);
}

}  // namespace

TEST_CASE("matrix factorization comes near the noise, with one learner and with four", "[training]") {
  const TemporaryDirectory directory;
  write_ratings(directory / "ratings");
  for (const std::string learners : {"1", "4"}) {
    CAPTURE(learners);
    const jobs::JobOptions job = ratings_job(directory, {"learners.per_device.fixed=" + learners});
    const std::filesystem::path output = directory / ("run" + learners);
    std::filesystem::create_directories(output);
    const jobs::RunSummary summary = run(job, output.string());
    CHECK(summary.status == jobs::RunStatus::kCompleted);
    CHECK(dataflow::score_of(summary.metrics).name == "rmse");
    CHECK_FALSE(summary.test.value("accuracy").has_value());
    REQUIRE(summary.test.value("rmse").has_value());
    CHECK(*summary.test.value("rmse") > 0.9 * kRatingNoise);
    CHECK(*summary.test.value("rmse") < 1.25 * kRatingNoise);
    CHECK(*summary.best_test <= *summary.test.value("rmse"));
    CHECK(*summary.test.value("rmse") == std::sqrt(*summary.test.value("loss")));
    const std::string model = (output / "model.safetensors").string();
    CHECK(jobs::evaluate_run(job, model, summary.model_sha256, {}).scores.value("rmse") == summary.test.value("rmse"));
  }
}

TEST_CASE("runs on ratings are repeatable, and every test rating counts once", "[training]") {
  const TemporaryDirectory directory;
  write_ratings(directory / "ratings");
  const jobs::JobOptions job =
      ratings_job(directory, {"learners.per_device.fixed=3", "training.max_epochs=1", "learning_rate.fixed={}"});
  std::vector<std::vector<dataflow::NamedTensor>> models;
  for (int turn = 0; turn < 2; ++turn) {
    jobs::Session session(job, "", {});
    session.scheduler().advance(session.training_ring(), 50);
    session.scheduler().drain();
    CHECK(session.scheduler().evaluate(session.test_ring()).examples == kTestRatings);  // the last batch is padded
    CHECK(session.warnings().empty());
    models.push_back(session.scheduler().snapshot());
  }
  REQUIRE(models[0].size() == 5);
  for (std::size_t i = 0; i < models[0].size(); ++i) CHECK(models[0][i].values == models[1][i].values);
}

}  // namespace arbalest::tests
