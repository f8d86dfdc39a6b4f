// Whole runs of hogwild on models with dense gradients: what they log and save, and how they stop and go on.
#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/staleness.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

using jobs::RunStatus;

jobs::JobOptions job_with(const std::vector<std::string>& settings, const std::string& config = "logistic-digits") {
  std::vector<std::string> all = {"synchronization={hogwild {}}", "learning_rate.with_learners=KEEP"};
  all.insert(all.end(), settings.begin(), settings.end());
  return short_job(config + ".txtpb", all);
}

void check_saved(const jobs::JobOptions& job, const std::filesystem::path& output, const jobs::RunSummary& summary) {
  const jobs::EvaluationResult again =
      jobs::evaluate_run(job, (output / "model.safetensors").string(), summary.model_sha256, {});
  CHECK(again.scores.value("accuracy") == summary.test.value("accuracy"));
  CHECK(again.scores.loss() == summary.test.loss());
}

}  // namespace

TEST_CASE("hogwild runs learn, log their staleness and save what they evaluated", "[training]") {
  for (const int learners : {2, 4}) {
    CAPTURE(learners);
    const TemporaryDirectory output;
    const jobs::JobOptions job =
        job_with({fmt::format("learners.per_device.fixed={}", learners), "training.max_epochs=2"});
    const Part part = train_part(job, output.path());
    CHECK(part.summary.status == RunStatus::kCompleted);
    CHECK(part.summary.test.value("accuracy").value() > 0.6);
    check_saved(job, output.path(), part.summary);
    REQUIRE(part.rows.size() == 2);
    sma::StalenessCounts sum;
    for (const jobs::EpochRow& row : part.rows) sma::add(sum, row.staleness);
    CHECK(sum == part.summary.staleness);
    CHECK(std::cmp_equal(count_of(sum), part.summary.mini_batches));
    CHECK(sum.rbegin()->first <= 3 * (learners - 1));
    CHECK_FALSE(part.rows[0].replica_distance);  // they share one vector
  }
}

TEST_CASE("a hogwild run that is stopped goes on from its checkpoint, also with other learners", "[checkpoint]") {
  const TemporaryDirectory output;
  const jobs::JobOptions job = job_with({"training.moving_average_epochs=0.2"});
  const Part first = train_part(job, output.path(), 60);
  CHECK(first.summary.status == RunStatus::kStopped);
  CHECK(first.summary.mini_batches > 0);
  check_saved(job, output.path(), first.summary);
  const Part second =
      train_part(job_with({"training.moving_average_epochs=0.2", "learners.per_device.fixed=3"}), output.path(), 500);
  CHECK(second.summary.status == RunStatus::kStopped);
  REQUIRE(second.resumed);
  CHECK(second.resumed->to == std::vector<int>{3});
  const Part last = train_part(job, output.path());
  CHECK(last.summary.status == RunStatus::kCompleted);
  CHECK(last.summary.epochs == 3);
  CHECK(last.summary.mini_batches >= 3 * 625);
  CHECK(std::cmp_equal(count_of(last.summary.staleness), last.summary.mini_batches));  // of all parts
  CHECK(last.summary.test.value("accuracy").value() > 0.6);
  check_saved(job, output.path(), last.summary);
}

TEST_CASE("hogwild runs with batch norm, schedules of learners and of the learning rate, and switches", "[training]") {
  const TemporaryDirectory output;
  const jobs::JobOptions job =
      job_with({"training.max_epochs=2", "learning_rate={base: 0.02 multistep { drop { epoch: 1 factor: 0.1 } }}",
                "learners.per_device={schedule { step { learners: 1 } step { at_batch: 200 learners: 3 } }}",
                "synchronization={s_sgd {} switch { at_epoch: 0.7 hogwild {} } switch { at_epoch: 1.5 sma {} }}"},
               "convnet-digits");
  const Part part = train_part(job, output.path());
  CHECK(part.summary.status == RunStatus::kCompleted);
  CHECK(part.summary.test.value("accuracy").value() > 0.9);
  check_saved(job, output.path(), part.summary);
  REQUIRE(part.rows.size() == 2);
  CHECK(part.rows[1].learning_rate < 0.5 * part.rows[0].learning_rate);
  CHECK_FALSE(part.summary.staleness.empty());
}

TEST_CASE("with one learner a hogwild run trains the model of any other scheme", "[training]") {
  const auto trained = [](const std::string& scheme) {
    return run(job_with({"training.max_epochs=2", "learners.per_device.fixed=1", "synchronization=" + scheme}));
  };
  CHECK(trained("hogwild").model_sha256 == trained("sma").model_sha256);
  CHECK(trained("hogwild").test.loss() == trained("sma").test.loss());
}

}  // namespace arbalest::tests
