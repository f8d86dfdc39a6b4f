// Tests which work the seconds of a run include. The run reads a clock that only the test moves: a task of evaluation
// takes 1,000 seconds, and a round of training takes one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "engine/stream_observer.h"
#include "tests/support/catch.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {
namespace {

constexpr int kEvaluationSeconds = 1000;

// As a RunObserver it moves the clock at every report of progress, which comes after each round whose results are
// known, because a round takes longer than the time between two reports. As a StreamObserver it moves the clock after
// each mini-batch of evaluation.
class MovedClock final : public jobs::RunObserver, public engine::StreamObserver {
 public:
  std::chrono::steady_clock::time_point now() const {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(seconds_.load()));
  }

  void before_task(const engine::Stream&, const engine::TaskInfo&) override {}
  void after_task(const engine::Stream&, const engine::TaskInfo& task) override {
    if (std::string_view(task.label) != "evaluate") return;
    seconds_ += kEvaluationSeconds;
    evaluated_ += kEvaluationSeconds;
  }

  void on_start(const jobs::RunStart&) override {}
  void on_progress(const jobs::RunProgress&) override {
    ++seconds_;
    ++trained_;
  }
  void on_epoch(const jobs::EpochRow& row) override {
    CHECK(row.elapsed_seconds == static_cast<double>(seconds_));
    CHECK(row.training_seconds == static_cast<double>(trained_.exchange(0)));
    CHECK(row.evaluation_seconds == static_cast<double>(evaluated_.exchange(0)));
    CHECK(row.evaluation_seconds >= kEvaluationSeconds);
    rows.push_back(row);
  }
  void on_resize(const jobs::ResizeRow& row) override { changes.push_back(row); }
  void on_finish(const jobs::RunSummary&) override {}

  std::vector<jobs::EpochRow> rows;
  std::vector<jobs::ResizeRow> changes;

 private:
  std::atomic<int> seconds_ = 0;
  std::atomic<int> trained_ = 0;    // of them, training since the last epoch
  std::atomic<int> evaluated_ = 0;  // of them, evaluation since the last epoch
};

jobs::RunSummary run_on(MovedClock& clock, const jobs::JobOptions& job) {
  jobs::RunContext context;
  context.data_root = ".";
  context.observers = {&clock};
  context.device_options.observer = &clock;
  context.now = [&clock] { return clock.now(); };
  context.measures_processor_time = false;
  return jobs::train(job, context);
}

}  // namespace

TEST_CASE("evaluation is part of the time to accuracy, and not of the training's seconds", "[training]") {
  MovedClock clock;
  const jobs::RunSummary summary =
      run_on(clock, load("logistic-digits.txtpb", {"devices=cpu", "learners.per_device.fixed=1",
                                                   "training.batch_size=2500", "training.target_accuracy=0.01"}));
  CHECK(summary.status == jobs::RunStatus::kTargetReached);
  REQUIRE(clock.rows.size() == 1);
  // Eight rounds; the results of the first are known after the third.
  CHECK(clock.rows[0].training_seconds == 6.0);
  CHECK(clock.rows[0].images_per_second == 20'000 / 6.0);
  CHECK(clock.rows[0].elapsed_seconds == 6.0 + clock.rows[0].evaluation_seconds);
  CHECK(summary.time_to_accuracy_seconds == clock.rows[0].elapsed_seconds);
  CHECK(summary.train_seconds == clock.rows[0].elapsed_seconds);
  CHECK(summary.images_per_second == 20'000 / 6.0);
}

TEST_CASE("evaluation does not count in the throughput by which the number of learners is tuned", "[training]") {
  MovedClock clock;
  jobs::JobOptions job = load("logistic-digits.txtpb", {"training.batch_size=2500", "training.max_epochs=40",
                                                        "learners.per_device.auto={min: 2 max: 3}"});
  job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
  job.learners_per_device = {2};
  run_on(clock, job);
  const auto first = std::ranges::find_if(
      clock.changes, [](const jobs::ResizeRow& row) { return row.from == std::vector{2} && row.evidence.has_value(); });
  REQUIRE(first != clock.changes.end());
  // A window of the tuner is an epoch: four rounds of two mini-batches, two of them after a report of progress.
  CHECK(first->evidence->rate == 20'000 / 2.0);
}

}  // namespace arbalest::tests
