// Whole runs of several processes whose learners are tuned; the processes are threads of this one.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "checkpoint/transfer/run_transfer.h"
#include "engine/host/topology.h"
#include "report/resume_point.h"
#include "report/run_directory.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

using engine::process::World;
using jobs::RunStatus;
using jobs::RunSummary;
namespace fs = std::filesystem;

// All learners have one thread.
std::string one_core() { return fmt::format("cpu:{}", engine::host::allowed_cores().front()); }

jobs::JobOptions digits_job(const std::vector<std::string>& settings) {
  std::vector<std::string> all = {fmt::format("devices=[\"{}\"]", one_core()), "training.max_epochs=3"};
  all.insert(all.end(), settings.begin(), settings.end());
  return load("logistic-digits.txtpb", all);
}

// The observer of rank 0, and the clock of a process: time moves by a millisecond at each look.
class Watcher final : public jobs::RunObserver {
 public:
  void on_start(const jobs::RunStart& start) override {
    resumed = start.resumed;
    learners = start.learners_per_device;
  }
  void on_progress(const jobs::RunProgress& /*progress*/) override {}
  void on_epoch(const jobs::EpochRow& /*row*/) override {}
  void on_resize(const jobs::ResizeRow& row) override { rows.push_back(row); }
  void on_rollback(const jobs::RollbackRow& row) override { rollbacks.push_back(row); }
  void on_finish(const RunSummary& /*summary*/) override {}

  std::chrono::steady_clock::time_point now() {
    if (--looks == 0) signal = 15;
    time_ += std::chrono::milliseconds(1);
    return time_;
  }

  int looks = 0;  // after so many looks at its clock a signal comes to the process; 0: none comes
  std::atomic<int> signal{0};
  std::optional<jobs::ResumeRow> resumed;
  std::vector<int> learners;
  std::vector<jobs::ResizeRow> rows;
  std::vector<jobs::RollbackRow> rollbacks;

 private:
  std::chrono::steady_clock::time_point time_;
};

struct Run {
  std::vector<RunSummary> summaries;  // by rank
  std::vector<jobs::ResizeRow> rows;
  std::vector<jobs::RollbackRow> rollbacks;
  std::optional<jobs::ResumeRow> resumed;

  const RunSummary& summary() const { return summaries.front(); }
};

// One process of `arbalest train --output --resume=auto`.
void train(World& world, const jobs::JobOptions& job, const fs::path& output, int looks, Run& run) {
  const auto ignore = [](const std::string&) {};
  Watcher watcher;
  watcher.looks = looks;
  jobs::RunContext context;
  std::optional<jobs::RunDirectory> directory;
  std::optional<jobs::ResumePoint> point;
  if (world.rank() == 0) {
    directory.emplace(output, job.name, jobs::ExistingRun::kContinue);
    point = jobs::newest_resume_point(output, job, ignore);
    directory->continue_from(point ? &point->saved : nullptr);
    context.observers = {&*directory, &watcher};
    context.log_bytes = [&] { return directory->log_bytes(); };
  }
  if (world.any_of(point ? 1 : 0) != 0) {
    if (!point) point.emplace();
    jobs::broadcast_run(world, point->saved);
    context.resumed = &point->saved;
    context.resumed_path = point->path.string();
  }
  context.world = &world;
  context.output_directory = output.string();
  context.stop_signal = &watcher.signal;
  context.now = [&] { return watcher.now(); };
  run.summaries[static_cast<std::size_t>(world.rank())] = jobs::train(job, context);
  if (world.rank() != 0) return;
  run.rows = watcher.rows;
  run.rollbacks = watcher.rollbacks;
  run.resumed = watcher.resumed;
}

// `looks`: after which a signal comes to the last process; 0: none comes.
Run train_over(int ranks, const jobs::JobOptions& job, const fs::path& output, int looks = 0) {
  Run run;
  run.summaries.resize(static_cast<std::size_t>(ranks));
  if (ranks == 1) {
    World alone;
    train(alone, job, output, looks, run);
    return run;
  }
  jobs::JobOptions own = job;
  own.learners_elsewhere = (ranks - 1) * (job.tuned ? job.tuned->max : job.learners_per_device.front());
  on_each_rank(ranks, [&](World& world) { train(world, own, output, world.rank() == ranks - 1 ? looks : 0, run); });
  return run;
}

int total(const std::vector<int>& counts) { return std::accumulate(counts.begin(), counts.end(), 0); }

// The setting of a job whose single device has the learners of all devices of that run.
std::string schedule_of(const Run& run, int at_start) {
  std::string steps = fmt::format("step {{ learners: {} }}", at_start);
  int present = at_start;
  for (const jobs::ResizeRow& row : run.rows) {
    if (total(row.to) == present) continue;
    present = total(row.to);
    if (row.batch == 0) steps.clear();
    steps += fmt::format(" step {{ at_batch: {} learners: {} }}", row.batch, present);
  }
  return fmt::format("learners.per_device.schedule={{{}}}", steps);
}

}  // namespace

TEST_CASE("processes: a tuned run of two trains to the bytes of one process with its schedule", "[processes]") {
  const TemporaryDirectory output;
  const bool saves = GENERATE(false, true);  // in almost every iteration, so saves meet changes that are being prepared
  CAPTURE(saves);
  std::vector<std::string> settings = {"learners.per_device.auto={max: 2}"};
  if (saves) settings.emplace_back("checkpoint={every_batches: 2 keep_last: 2}");
  const Run tuned = train_over(2, digits_job(settings), output / "tuned");
  CHECK(tuned.summary().status == RunStatus::kCompleted);
  REQUIRE_FALSE(tuned.rows.empty());
  std::vector<int> present = {1, 1};
  bool has_grown = false;
  for (const jobs::ResizeRow& row : tuned.rows) {
    CHECK(row.from == present);
    CHECK(row.to.front() == row.to.back());
    CHECK_FALSE(row.reason.empty());
    CHECK(row.evidence.has_value());
    has_grown = has_grown || row.to == std::vector<int>{2, 2};
    present = row.to;
  }
  CHECK(has_grown);
  CHECK(tuned.summary().learners_per_device == present);
  CHECK(tuned.summaries[1].learners_per_device == present);
  const Run alone = train_over(1, digits_job({schedule_of(tuned, 2)}), output / "alone");
  CHECK(alone.summary().mini_batches == tuned.summary().mini_batches);
  CHECK(alone.summary().model_sha256 == tuned.summary().model_sha256);
}

TEST_CASE("processes: a signal during a search stops all, and another number of them goes on", "[processes]") {
  const TemporaryDirectory output;
  const jobs::JobOptions narrow = digits_job({"learners.per_device.auto={max: 2}"});
  const jobs::JobOptions wide = digits_job({"learners.per_device.auto={max: 8}"});
  const Run first = train_over(2, narrow, output.path(), 600);
  for (const RunSummary& summary : first.summaries) {
    CHECK(summary.status == RunStatus::kStopped);
    CHECK(summary.mini_batches == first.summary().mini_batches);
  }
  const std::vector<int> before = first.summary().learners_per_device;
  // One process has as many learners in all.
  const Run second = train_over(1, wide, output.path(), 30);
  REQUIRE(second.resumed);
  CHECK(second.resumed->from == before);
  CHECK(second.resumed->to == std::vector<int>{total(before)});
  const std::vector<int> between = second.summary().learners_per_device;
  const Run third = train_over(2, wide, output.path(), 30);
  REQUIRE(third.resumed);
  CHECK(third.resumed->from == between);
  CHECK(third.resumed->to == std::vector<int>(2, (total(between) + 1) / 2));
  // As many processes as before go on with the numbers that these had.
  const Run last = train_over(2, wide, output.path());
  REQUIRE(last.resumed);
  CHECK(last.resumed->to == last.resumed->from);
  CHECK(last.summary().status == RunStatus::kCompleted);
  CHECK(last.summary().examples >= 3 * 20'000);
}

TEST_CASE("processes: a divergence during a search ends all, or rolls all back", "[processes]") {
  for (const bool rolls_back : {false, true}) {
    CAPTURE(rolls_back);
    const TemporaryDirectory output;
    std::vector<std::string> settings = {"learners.per_device.auto={max: 4}"};
    if (rolls_back) settings.emplace_back("training.on_divergence=ROLL_BACK");
    jobs::JobOptions job = digits_job(settings);
    job.learning_rate.base = 1e38;  // more than a job file may ask for; outputs overflow
    const Run run = train_over(2, job, output.path());
    for (const RunSummary& summary : run.summaries) {
      CHECK(summary.status == RunStatus::kDiverged);
      CHECK(summary.mini_batches == run.summary().mini_batches);
    }
    CHECK(run.rollbacks.empty() != rolls_back);
  }
}

}  // namespace arbalest::tests
