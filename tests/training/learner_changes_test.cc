// Runs whose number of learners changes: by the auto-tuner, and by a recorded schedule.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/host/topology.h"
#include "learners/learner_pool.h"
#include "report/run_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/memory_limit.h"
#include "tests/training/whole_run.h"
#include "train/inspection.h"
#include "train/learners/learner_cache.h"
#include "train/learners/learner_changes.h"
#include "train/learners/tuned_changes.h"

namespace arbalest::tests {

namespace {

using jobs::RunSummary;

// Records what a run reports about its learners.
class Listener final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override { learners = start.learners_per_device; }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& row) override { CHECK(row.learners_per_device == learners); }
  void on_resize(const jobs::ResizeRow& row) override {
    CHECK(row.from == learners);
    learners = row.to;
    rows.push_back(row);
  }
  void on_finish(const RunSummary& summary) override { CHECK(summary.learners_per_device == learners); }

  std::vector<int> learners;
  std::vector<jobs::ResizeRow> rows;
};

RunSummary run_into(const jobs::JobOptions& job, const std::filesystem::path& path, Listener& listener) {
  jobs::RunDirectory directory(path, job.name);
  jobs::RunContext context;
  context.output_directory = path.string();
  context.observers = {&directory, &listener};
  return jobs::train(job, context);
}

jobs::JobOptions job_with(const std::string& learners) {
  return load("logistic-digits.txtpb", {"devices=cpu", "training.max_epochs=3", "learners.per_device." + learners});
}

}  // namespace

TEST_CASE("on unlike devices a search begins at each device's cached number", "[training]") {
  jobs::JobOptions job = tuned_on_unlike_devices();
  const TemporaryDirectory directory;
  const jobs::LearnerCache cache(directory.path(), "1");
  cache.remember(job, {4, 1}, 100.0);
  const auto session = jobs::open_session(job, "", {});
  engine::process::World alone;
  const auto changes = jobs::make_learner_changes(job, *session, &cache, alone);
  const auto change = changes->due(0);
  REQUIRE(change.has_value());
  CHECK(change->to == std::vector<int>{4, 1});
  CHECK_THAT(change->reason, ContainsSubstring("begins where `arbalest tune` has ended"));
}

namespace {

// Adds the gradient measurements of `learners` in a round to its progress.
using Gradients = std::function<void(int learners, scheduler::Progress& progress)>;

// Returns the number of learners that the search finds if k learners train rate(k) images/s.
int found_at(const std::function<double(int)>& rate, jobs::JobOptions job, const jobs::LearnerCache& cache,
             const Gradients& gradients = {}) {
  const auto session = jobs::open_session(job, "", {});
  engine::process::World alone;
  const auto changes = jobs::make_learner_changes(job, *session, &cache, alone);
  const auto& tuned = dynamic_cast<const jobs::TunedChanges&>(*changes);
  scheduler::Scheduler& scheduler = session->scheduler();
  while (!tuned.is_settled()) {
    if (const auto change = changes->due(scheduler.batches()); change && change->to.front() != scheduler.learners()) {
      scheduler.drain();
      session->resize(change->to);
    }
    scheduler::Progress progress = scheduler.advance(session->training_ring(), 1);
    progress.add(scheduler.drain());
    if (gradients) gradients(scheduler.learners(), progress);
    changes->observe(progress, static_cast<double>(progress.examples) / rate(scheduler.learners()));
    REQUIRE(scheduler.batches() < 100'000);
  }
  return scheduler.learners();
}

}  // namespace

TEST_CASE("a search stays near its start only if the start comes from `arbalest tune`", "[training]") {
  const TemporaryDirectory directory;
  const jobs::LearnerCache cache(directory.path(), "1");
  jobs::JobOptions job = load("logistic-digits.txtpb", {"learners.per_device.auto={max: 8}"});
  job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
  const auto two_peaks = [](int learners) { return learners == 1 ? 1000.0 : learners < 8 ? 800.0 : 2000.0; };
  CHECK(found_at(two_peaks, job, cache) == 8);
  cache.remember(job, {1}, 1000.0);
  CHECK(found_at(two_peaks, job, cache) == 1);
}

TEST_CASE("for goodput, the measured gradients decide how many learners are worth their throughput", "[training]") {
  const TemporaryDirectory directory;
  const jobs::LearnerCache cache(directory.path(), "1");
  const auto job_by = [](const std::string& objective) {
    jobs::JobOptions job =
        load("logistic-digits.txtpb", {"learners.per_device.auto={max: 8 objective: " + objective + "}"});
    job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
    return job;
  };
  const auto rate = [](int learners) { return 10'000.0 * std::sqrt(learners); };
  // |G|^2 is 1 and S is `scale` mini-batches. A single learner's two gradients count like those of two learners.
  const auto noise = [](double scale) -> Gradients {
    return [scale](int learners, scheduler::Progress& progress) {
      progress.gradient_samples = 1;
      progress.gradient_square_mean = 1.0 + scale;
      progress.mean_gradient_square = 1.0 + scale / std::max(2, learners);
    };
  };
  CHECK(found_at(rate, job_by("THROUGHPUT"), cache, noise(4.0)) == 8);
  // Goodput relative to one learner is sqrt(k) (4 + 1) / (4 + k): 1, 1.18, 1.24, 1.25, 1.24, 1.22, 1.20, 1.18.
  const int found = found_at(rate, job_by("GOODPUT"), cache, noise(4.0));
  CHECK(found >= 3);
  CHECK(found <= 5);
  CHECK(found_at(rate, job_by("GOODPUT"), cache, noise(0.1)) == 1);
  CHECK(found_at(rate, job_by("GOODPUT"), cache, noise(1000.0)) == 8);
}

TEST_CASE("unlike devices: measured and possible configurations have a number for each device", "[training]") {
  jobs::JobOptions job = tuned_on_unlike_devices();
  const auto session = jobs::open_session(job, "", {});
  jobs::TunedChanges changes(job, *session, {});
  // The first device is best with one learner, the second with four.
  const auto rate = [](const std::vector<int>& learners) {
    return (learners[0] == 1 ? 400 : learners[0] == 2 ? 300 : 100) + 150 * learners[1];
  };
  std::vector<int> present = job.learners_per_device;
  while (!changes.is_settled()) {
    if (const auto change = changes.due(0)) {
      session->resize(change->to);
      present = change->to;
    }
    scheduler::Progress progress;
    progress.tasks = 1000;
    progress.examples = rate(present);
    changes.observe(progress, 1.0);
  }
  CHECK(changes.present() == jobs::DeviceConfigurations{{1, 2}, {4, 1}});
  CHECK(present == std::vector<int>{1, 4});
  for (const autotuner::Point& point : changes.tuner().tuner().curve().points()) {
    const std::vector<int> learners = jobs::learners_of(changes.measured_with(point));
    CHECK(learners == std::vector<int>{1, point.configuration.learners});
    CHECK(point.rate == Approx(rate(learners)));
  }
  CHECK(changes.equal_counts() == std::vector<jobs::DeviceConfigurations>{
                                      {{1, 2}, {1, 1}}, {{2, 1}, {2, 1}}, {{3, 1}, {3, 1}}, {{4, 1}, {4, 1}}});
}

// Only the files tell how many examples there are, so the job's reader could not lower the bound.
TEST_CASE("a search tries no number whose round is longer than an epoch, if only the files tell its length",
          "[training]") {
  jobs::JobOptions job = load("logistic-digits.txtpb", {"devices=cpu", "learners.per_device.auto={max: 4}"});
  job.training.batch_size = 6000;  // 3 mini-batches an epoch
  job.data.training_examples.reset();
  job.tuned->max_is_given = false;
  const auto session = jobs::open_session(job, "", {});
  const jobs::TunedChanges changes(job, *session, {});
  CHECK(jobs::learners_of(changes.equal_counts().back()) == std::vector<int>{3});
  CHECK_THAT(changes.warning(), ContainsSubstring("at most 3 learners of each device: a round of 4 learners"));
  job.tuned->max_is_given = true;
  CHECK_THROWS_WITH(jobs::TunedChanges(job, *session, {}),
                    ContainsSubstring("learners.per_device.auto.max: a round of 4 learners"));
}

TEST_CASE("a device is tuned over numbers that suit its cores, or over every number if none does") {
  const std::vector<engine::DeviceSpec> devices = {{"cpu:0-2", {0, 1, 2}}, {"cpu:3-6", {3, 4, 5, 6}}};
  using Space = std::vector<autotuner::Configuration>;
  CHECK(jobs::counts_on(devices, {1, 4}) == std::vector<Space>{{{1, 3}, {3, 1}}, {{1, 4}, {2, 2}, {4, 1}}});
  CHECK(jobs::counts_on(devices, {2, 4}) == std::vector<Space>{{{2, 1}, {3, 1}, {4, 1}}, {{2, 2}, {3, 1}, {4, 1}}});
}

TEST_CASE("the tuner describes learners by the threads that they get") {
  const jobs::JobOptions job = load("logistic-digits.txtpb", {"devices=cpu"});
  for (const int cores : {1, 2, 3, 4, 6, 7, 12}) {
    engine::DeviceSpec spec{"cpu", std::vector<int>(static_cast<std::size_t>(cores))};
    std::iota(spec.cores.begin(), spec.cores.end(), 0);  // nothing runs, so the cores need not exist
    const auto device = engine::open_device(spec);
    const learners::LearnerPool pool(*job.graph, *device, {}, 1);
    for (const autotuner::Configuration& configuration : jobs::all_counts_on(spec, {1, 16})) {
      CAPTURE(cores, configuration.learners);
      CHECK(pool.threads_for(configuration.learners) == configuration.threads);
    }
  }
}

TEST_CASE("an auto-tuned run explains its changes, and its record trains to the same bytes", "[training]") {
  const TemporaryDirectory directory;
  Listener tuned;
  const RunSummary found = run_into(job_with("auto={max: 4}"), directory / "tuned", tuned);
  CHECK(found.status == jobs::RunStatus::kCompleted);
  REQUIRE_FALSE(tuned.rows.empty());
  for (const jobs::ResizeRow& row : tuned.rows) {
    CHECK_FALSE(row.reason.empty());
    CHECK(row.to.front() >= 1);
    CHECK(row.to.front() <= 4);
    CHECK(row.evidence.has_value() == (row.batch > 0));
  }
  std::ifstream metrics(directory / "tuned/metrics.jsonl");
  std::size_t resizes = 0;
  for (std::string line; std::getline(metrics, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["event"] != "resize") continue;
    CHECK(row["learners_per_device"] == tuned.rows.at(resizes).to);
    ++resizes;
  }
  CHECK(resizes == tuned.rows.size());

  Listener replayed;
  const RunSummary again =
      run_into(jobs::load_job((directory / "tuned/replay.txtpb").string()), directory / "again", replayed);
  CHECK(again.model_sha256 == found.model_sha256);
  CHECK(again.test.value("accuracy") == found.test.value("accuracy"));
  CHECK(replayed.learners == tuned.learners);
}

TEST_CASE("an auto-tuned run that never changes its learners has a record too", "[training]") {
  const TemporaryDirectory directory;
  for (const int learners : {1, 2}) {
    const std::string name = std::to_string(learners);
    Listener tuned;
    const RunSummary found =
        run_into(job_with(fmt::format("auto={{min: {0} max: {0}}}", learners)), directory / ("tuned" + name), tuned);
    CHECK(tuned.learners == std::vector<int>{learners});
    REQUIRE(std::filesystem::exists(directory / ("tuned" + name + "/replay.txtpb")));
    Listener replayed;
    const jobs::JobOptions job = jobs::load_job((directory / ("tuned" + name + "/replay.txtpb")).string());
    CHECK_FALSE(job.tuned.has_value());
    const RunSummary again = run_into(job, directory / ("again" + name), replayed);
    CHECK(again.model_sha256 == found.model_sha256);
    CHECK_FALSE(std::filesystem::exists(directory / ("again" + name + "/replay.txtpb")));
  }
}

namespace {

// Limits the memory when the run starts. At the second decision, lifts the limit and stops the run.
class Squeeze final : public jobs::RunObserver {
 public:
  explicit Squeeze(std::int64_t bytes) : bytes_(bytes) {}

  void on_start(const jobs::RunStart& /*start*/) override { limit_.emplace(bytes_); }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& /*row*/) override { ++epochs; }
  void on_resize(const jobs::ResizeRow& row) override {
    rows.push_back(row);
    if (rows.size() < 2) return;
    limit_.reset();
    stop_signal = 15;
  }
  void on_finish(const RunSummary& /*summary*/) override { limit_.reset(); }

  std::vector<jobs::ResizeRow> rows;
  std::atomic<int> stop_signal = 0;
  int epochs = 0;

 private:
  std::int64_t bytes_;
  std::optional<AddressSpaceLimit> limit_;
};

}  // namespace

TEST_CASE("if there is no memory for more learners, the run continues with the present ones", "[training][memory]") {
  const TemporaryDirectory directory;
  const jobs::LearnerCache cache(directory / "cache", "1");
  jobs::JobOptions job = wide_job(4'000, "auto { max: 2 }");
  job.training.max_epochs = 20;
  job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
  cache.remember(job, {1}, 1.0);
  Squeeze squeeze(jobs::inspect(job).learner_bytes / 2);
  jobs::RunContext context;
  context.observers = {&squeeze};
  context.stop_signal = &squeeze.stop_signal;
  context.learner_cache = &cache;
  const RunSummary summary = jobs::train(job, context);
  CHECK(summary.status == jobs::RunStatus::kStopped);
  CHECK(summary.learners == 1);
  REQUIRE(squeeze.rows.size() == 2);
  CHECK_THAT(squeeze.rows[0].reason, ContainsSubstring("where `arbalest tune` has ended"));
  const jobs::ResizeRow& row = squeeze.rows[1];
  CHECK(row.from == std::vector<int>{1});
  CHECK(row.to == row.from);
  CHECK_THAT(row.reason, ContainsSubstring("2 learners do not fit in memory: back to 1 learner"));
  CHECK(summary.examples > static_cast<std::int64_t>(row.batch) * job.training.batch_size);
}

TEST_CASE("if one device runs out of memory, learners prepared on the others are freed", "[training][memory]") {
  const auto cores = engine::host::allowed_cores();
  if (cores.size() < 2) skip_test("it takes two cores");
  jobs::JobOptions job = wide_job(4'000, "auto { max: 2 }");
  job.devices = {engine::parse_device(fmt::format("cpu:{}", cores[0])),
                 engine::parse_device(fmt::format("cpu:{}", cores[1]))};
  job.learners_per_device = {1, 1};
  const auto session = jobs::open_session(job, "", {});
  const AddressSpaceLimit limit(jobs::inspect(job).learner_bytes * 3 / 2);
  CHECK_THROWS(session->prepare(std::vector{2, 2}));
  CHECK_NOTHROW(session->prepare(std::vector{1, 2}));  // fits only if the first device's learners have been freed
}

TEST_CASE("a run follows a schedule of learners across epochs, and learns", "[training]") {
  const TemporaryDirectory directory;
  Listener listener;
  const RunSummary summary =
      run_into(job_with("schedule={step { learners: 2 } step { at_batch: 500 learners: 4 } step { at_batch: 1100 "
                        "learners: 1 }}"),
               directory / "run", listener);
  REQUIRE(listener.rows.size() == 2);
  CHECK(listener.rows[0].batch == 500);
  CHECK(listener.rows[0].to == std::vector<int>{4});
  CHECK(listener.rows[1].batch == 1100);
  CHECK_FALSE(listener.rows[1].evidence.has_value());
  CHECK(summary.examples == 3 * 20000);
  CHECK(summary.test.value("accuracy").value() > 0.8);
  CHECK_FALSE(std::filesystem::exists(directory / "run/replay.txtpb"));
}

}  // namespace arbalest::tests
