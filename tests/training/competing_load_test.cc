// Another load starts on the cores of a tuned run, and ends. No assertion depends on the clock. In the first test the
// learners are real, but the seconds that the tuner sees are made up. In the second the load is real, and the
// assertions hold for any speed.
#include <atomic>
#include <functional>
#include <thread>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "jobs/report/run_directory.h"
#include "jobs/run/learners/learner_changes.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

using jobs::RunSummary;

// Threads that compute without pause during the lifetime of this object.
class Load {
 public:
  explicit Load(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        while (!stopping_.load(std::memory_order_relaxed)) work_.fetch_add(1, std::memory_order_relaxed);
      });
    }
  }
  ~Load() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::atomic<bool> stopping_ = false;
  std::atomic<std::int64_t> work_ = 0;
  std::vector<std::thread> threads_;
};

// Starts a load on half of the cores after the first epoch and stops it after the third of four.
class Visitor final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override { learners = start.learners_per_device; }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& row) override {
    CHECK(row.learners_per_device == learners);
    if (row.epoch == 1) load_ = std::make_unique<Load>(std::max(1, engine::host::usable_cores() / 2));
    if (row.epoch == 3) load_.reset();
  }
  void on_resize(const jobs::ResizeRow& row) override {
    CHECK(row.from == learners);
    CHECK(row.to.front() >= 1);
    CHECK(row.to.front() <= 4);
    CHECK(row.evidence.has_value() == (row.batch > 0));
    learners = row.to;
  }
  void on_finish(const RunSummary& /*summary*/) override {}

  std::vector<int> learners;

 private:
  std::unique_ptr<Load> load_;
};

}  // namespace

TEST_CASE("a tuned run adapts to a load that starts and ends, as seen in the reported throughput", "[training]") {
  jobs::JobOptions job = load("logistic-digits.txtpb", {"learners.per_device.auto={max: 2}"});
  job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
  const auto session = jobs::open_session(job, "", jobs::Session::Purpose::kTraining, {});
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
  const auto alone = [](int learners) { return learners == 1 ? 1000.0 : 1500.0; };
  const auto beside_another = [](int learners) { return learners == 1 ? 700.0 : 400.0; };
  CHECK(settle_at(alone) == 2);
  CHECK(settle_at(beside_another) == 1);
  CHECK(settle_at(alone) == 2);
  CHECK(static_cast<std::uint64_t>(tasks) == scheduler.batches());  // none lost, none counted twice
  CHECK(scheduler.evaluate(session->test_ring()).accuracy > 0.8);
}

TEST_CASE("with a load that starts and ends, a tuned run loses no example, and its record replays", "[training]") {
  const TemporaryDirectory directory;
  const jobs::JobOptions job =
      load("logistic-digits.txtpb", {"devices=cpu", "training.max_epochs=4", "learners.per_device.auto={max: 4}"});
  Visitor visitor;
  RunSummary found;
  {
    jobs::RunDirectory kept(directory / "tuned", job.name);
    jobs::RunContext context;
    context.output_directory = (directory / "tuned").string();
    context.observers = {&kept, &visitor};
    found = jobs::train(job, context);
  }
  CHECK(found.status == jobs::RunStatus::kCompleted);
  CHECK(found.examples >= 4 * 20'000);
  CHECK(found.examples < 4 * 20'000 + 4 * 32);  // the last round may extend beyond the last epoch
  CHECK(found.learners_per_device == visitor.learners);
  CHECK(found.test_accuracy.value() > 0.8);
  const std::filesystem::path replay = directory / "tuned/replay.txtpb";
  REQUIRE(std::filesystem::exists(replay));
  std::filesystem::create_directory(directory / "again");
  const RunSummary again = run(jobs::load_job(replay.string()), (directory / "again").string());
  CHECK(again.model_sha256 == found.model_sha256);
}

}  // namespace arbalest::tests
