// Another load starts on the cores of a tuned run, and ends. No assertion depends on the machine's clock: the learners
// are real, but the seconds that the tuner sees are made up.
#include <chrono>
#include <filesystem>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "report/run_directory.h"
#include "tests/support/catch.h"
#include "tests/support/evaluation.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"
#include "train/learners/tuned_changes.h"

namespace arbalest::tests {

namespace {

using jobs::RunSummary;

// Images/s of a device with one core, alone and beside another load.
double alone(int learners) { return learners == 1 ? 100.0 : 150.0; }
double beside_another(int learners) { return learners == 1 ? 70.0 : 40.0; }

// Gives the run a clock that shows the seconds of its rounds at these speeds. A load starts after the second epoch and
// ends after the third of five.
class Visitor final : public jobs::RunObserver {
 public:
  std::chrono::steady_clock::time_point now() const {
    using Clock = std::chrono::steady_clock;
    return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_)));
  }

  void on_start(const jobs::RunStart& start) override { learners = start.learners_per_device; }
  // Called after each round whose results are known, because a round takes longer than the time between two reports.
  void on_progress(const jobs::RunProgress& /*progress*/) override {
    const int images = kBatch * learners.front();
    seconds_ += images / (is_loaded_ ? beside_another : alone)(learners.front());
  }
  void on_epoch(const jobs::EpochRow& row) override {
    CHECK(row.learners_per_device == learners);
    after_epoch.push_back(learners.front());
    is_loaded_ = row.epoch == 2;
  }
  void on_resize(const jobs::ResizeRow& row) override {
    CHECK(row.from == learners);
    CHECK(row.evidence.has_value() == (row.batch > 0));
    learners = row.to;
  }
  void on_finish(const RunSummary& /*summary*/) override {}

  static constexpr int kBatch = 32;
  std::vector<int> learners;
  std::vector<int> after_epoch;  // learners

 private:
  double seconds_ = 0.0;
  bool is_loaded_ = false;
};

jobs::JobOptions tuned_job() {
  jobs::JobOptions job = load("logistic-digits.txtpb", {"training.max_epochs=5", "learners.per_device.auto={max: 2}"});
  job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
  return job;
}

}  // namespace

TEST_CASE("a tuned run adapts to a load that starts and ends, as seen in the reported throughput", "[training]") {
  jobs::JobOptions job = tuned_job();
  const auto session = jobs::open_session(job, "", {});
  scheduler::Scheduler& scheduler = session->scheduler();
  jobs::TunedChanges changes(job, *session, jobs::first_guess(job));
  std::int64_t tasks = 0;
  // Runs rounds at rate(learners) images/s until the tuner has settled on a number of learners, and 300 rounds more.
  const auto settle_at = [&](const std::function<double(int)>& rate) {
    for (int quiet = 0; quiet < 300;) {
      if (const auto change = changes.due(scheduler.batches()); change && change->to.front() != scheduler.learners()) {
        tasks += scheduler.drain().tasks;
        session->resize(change->to);
        quiet = 0;
      }
      scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
      progress.add(scheduler.drain());
      tasks += progress.tasks;
      changes.observe(progress, static_cast<double>(progress.examples) / rate(scheduler.learners()));
      if (changes.is_settled()) ++quiet;
      REQUIRE(scheduler.batches() < 100'000);
    }
    return scheduler.learners();
  };
  CHECK(settle_at(alone) == 2);
  CHECK(settle_at(beside_another) == 1);
  CHECK(settle_at(alone) == 2);
  CHECK(static_cast<std::uint64_t>(tasks) == scheduler.batches());  // none lost, none counted twice
  CHECK(accuracy_of(scheduler.evaluate(session->test_ring())) > 0.8);
}

TEST_CASE("a run follows a load that starts and ends, loses no example, and its record replays", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job = tuned_job();
  REQUIRE(job.training.batch_size == Visitor::kBatch);
  Visitor visitor;
  RunSummary found;
  {
    jobs::RunDirectory kept(directory / "tuned", job.name);
    jobs::RunContext context;
    context.output_directory = (directory / "tuned").string();
    context.observers = {&kept, &visitor};
    context.now = [&visitor] { return visitor.now(); };
    context.measures_processor_time = false;
    found = jobs::train(job, context);
  }
  CHECK(found.status == jobs::RunStatus::kCompleted);
  REQUIRE(visitor.after_epoch.size() == 5);
  CHECK(visitor.after_epoch[1] == 2);  // alone
  CHECK(visitor.after_epoch[2] == 1);  // beside the load
  CHECK(visitor.after_epoch[4] == 2);  // alone again
  CHECK(found.examples >= 5 * 20'000);
  CHECK(found.examples < 5 * 20'000 + 2 * 32);  // the last round may extend beyond the last epoch
  CHECK(found.learners_per_device == visitor.learners);
  CHECK(found.test.value("accuracy").value() > 0.8);
  const std::filesystem::path replay = directory / "tuned/replay.txtpb";
  REQUIRE(std::filesystem::exists(replay));
  std::filesystem::create_directory(directory / "again");
  const RunSummary again = run(jobs::load_job(replay.string()), (directory / "again").string());
  CHECK(again.model_sha256 == found.model_sha256);
}

}  // namespace arbalest::tests
