// Whole runs whose number of learners grows.
#include <string>
#include <tuple>
#include <vector>

#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

// Records the changes of the number of learners.
class Changes final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override { told = start.learners_change; }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& /*row*/) override {}
  void on_resize(const jobs::ResizeRow& row) override { rows.push_back(row); }
  void on_finish(const jobs::RunSummary& /*summary*/) override {}

  std::vector<jobs::ResizeRow> rows;
  std::string told;
};

// A linear model on the digits: 625 mini-batches an epoch.
jobs::JobOptions job_with(const std::string& per_device, const std::string& synchronization) {
  return load("logistic-digits.txtpb",
              {"devices=cpu", "training.batch_size=32", "training.max_epochs=2",
               "learning_rate={ base: 0.001 with_learners: LINEAR }", "learners.per_device={" + per_device + "}",
               "synchronization={" + synchronization + "}"});
}

jobs::RunSummary run_with(const jobs::JobOptions& job, jobs::RunObserver& observer, const std::string& output) {
  jobs::RunContext context;
  context.output_directory = output;
  context.observers = {&observer};
  return jobs::train(job, context);
}

}  // namespace

TEST_CASE("learners double at the first round that begins at or after the planned epoch", "[training]") {
  // The number grows at epochs 0.5 and 1, that is at 312.5 and 625 mini-batches. With rounds of one step there are two
  // learners from mini-batch 313 on, and three from 625 on. With rounds of five steps there are two learners from 315
  // on, and their rounds of 10 mini-batches end at 625.
  for (const auto& [scheme, first, second] :
       {std::tuple("s_sgd {}", 313U, 625U), std::tuple("sma { period: 5 }", 315U, 625U)}) {
    CAPTURE(scheme);
    const TemporaryDirectory grown;
    Changes changes;
    const auto summary = run_with(job_with("growth { to: 3 epochs: 1 }", scheme), changes, grown.path().string());
    CHECK(summary.status == jobs::RunStatus::kCompleted);
    CHECK(summary.learners_per_device == std::vector<int>{3});
    CHECK(changes.told == "3 from epoch 1 on");
    REQUIRE(changes.rows.size() == 2);
    CHECK(changes.rows[0].batch == first);
    CHECK(changes.rows[0].from == std::vector<int>{1});
    CHECK(changes.rows[0].to == std::vector<int>{2});
    CHECK(changes.rows[1].batch == second);
    CHECK(changes.rows[1].to == std::vector<int>{3});

    // A schedule with the same numbers at these mini-batches trains to the same bytes.
    const TemporaryDirectory scheduled;
    const std::string steps = fmt::format(
        "schedule {{ step {{ learners: 1 }} step {{ at_batch: {} learners: 2 }} step {{ at_batch: {} learners: 3 }} }}",
        first, second);
    const auto again = run_with(job_with(steps, scheme), changes, scheduled.path().string());
    const auto read = [](const TemporaryDirectory& directory, const jobs::RunSummary& of) {
      return jobs::read_safetensors((directory.path() / "model.safetensors").string(), of.model_sha256);
    };
    const auto expected = read(scheduled, again);
    const auto actual = read(grown, summary);
    REQUIRE(actual.size() == expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) CHECK(actual[i].values == expected[i].values);
  }
}

TEST_CASE("a round longer than the time between doublings skips some", "[training]") {
  Changes changes;
  // The number would double at epochs 0.01, 0.02 and 0.03. The first round of 60 mini-batches ends at epoch 0.096.
  const auto summary = run_with(job_with("growth { to: 8 epochs: 0.03 }", "sma { period: 60 }"), changes, "");
  CHECK(summary.status == jobs::RunStatus::kCompleted);
  REQUIRE(changes.rows.size() == 1);
  CHECK(changes.rows[0].batch == 60);
  CHECK(changes.rows[0].from == std::vector<int>{1});
  CHECK(changes.rows[0].to == std::vector<int>{8});
}

}  // namespace arbalest::tests
