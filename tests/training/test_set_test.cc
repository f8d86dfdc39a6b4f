// A run reads its test set after every epoch without a validation set, and once, at its end, with one.
#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataflow/input/batches/input_observer.h"
#include "engine/base/error.h"
#include "report/resume_point.h"
#include "report/run_directory.h"
#include "tests/support/catch.h"
#include "tests/support/small_datasets.h"
#include "tests/training/whole_run.h"
#include "train/train.h"

namespace arbalest::tests {

namespace {

using jobs::RunStatus;
using jobs::RunSummary;
namespace fs = std::filesystem;

constexpr int kEpochs = 5;

// Sixty images for training, sixty for the test and eighteen for validation, in three classes. One test image cannot be
// read: whenever a mini-batch of the test set is handed out, the ring counts it.
void write_data(const fs::path& root) {
  write_folders(root / "folders");
  write_folder(root / "folders/val", 18, 100);
  write_text(root / "folders/test/class0/03.png", "no image");
}

jobs::JobOptions job_with(const std::string& data, const std::vector<std::string>& settings = {}) {
  const std::string text = fmt::format(
      "name: 'counted' model {{ zoo {{ logistic_regression {{}} }} }}\n"
      "data {{ {} }}\n"
      "training {{ batch_size: 4 max_epochs: {} }} learning_rate {{ base: 0.01 fixed {{}} }} devices: 'cpu'\n"
      "learners {{ per_device {{ fixed: 2 }} }} checkpoint {{ every_epochs: 1 }}",
      data, kEpochs);
  return jobs::parse_job(jobs::SourceText("counted", text), settings);
}

std::string images(const std::string& more) {
  return fmt::format(
      "images {{ directory: 'folders' classes: 3 {} decoding {{ height: 8 width: 8 resize: 9 on_unreadable: SKIP }} }}",
      more);
}

const std::string kOwnFiles = images("validation: 'val'");
const std::string kSplit = images("") + " validation { fraction: 0.3 }";

// Counts the tasks that fill mini-batches. Each evaluated set has one mini-batch, so a pass over it takes one task, and
// the ring fills it anew after each pass.
class FillCounter final : public dataflow::InputObserver {
 public:
  void before_fill() override { ++fills; }
  void after_fill() override {}
  void before_wait() override {}
  void after_wait() override {}

  std::atomic<int> fills{0};
};

// Records the rows of a run, and asks it to stop at the end of an epoch.
class Listener final : public jobs::RunObserver {
 public:
  explicit Listener(int stops_after = 0) : stops_after_(stops_after) {}

  void on_start(const jobs::RunStart&) override {}
  void on_progress(const jobs::RunProgress&) override {}
  void on_epoch(const jobs::EpochRow& row) override {
    rows.push_back(row);
    if (row.epoch == stops_after_) signal = 15;
  }
  void on_finish(const RunSummary& finished) override { summary = finished; }

  std::vector<jobs::EpochRow> rows;
  RunSummary summary;
  std::atomic<int> signal{0};

 private:
  int stops_after_;
};

struct Trained {
  RunSummary summary;
  std::vector<jobs::EpochRow> rows;
  int fills = 0;  // of the rings of both evaluated sets
};

Trained train(const jobs::JobOptions& job, const fs::path& root, const fs::path& output = "") {
  Listener listener;
  FillCounter counter;
  jobs::RunContext context;
  context.data_root = root.string();
  context.output_directory = output.string();
  context.observers = {&listener};
  context.evaluation_input = &counter;
  jobs::train(job, context);
  return {listener.summary, listener.rows, counter.fills};
}

}  // namespace

TEST_CASE("without a validation set the test set is read after every epoch, and with one once", "[training]") {
  const TemporaryDirectory root;
  write_data(root.path());
  const Trained blind = train(job_with(images("")), root.path());
  CHECK(blind.summary.status == RunStatus::kCompleted);
  CHECK(blind.summary.skipped_examples == kEpochs);  // one for each time that the test set was read
  CHECK(blind.summary.best_test.has_value());
  for (const jobs::EpochRow& row : blind.rows) {
    CHECK(row.test.value("accuracy").has_value());
    CHECK_FALSE(row.validation.value("accuracy").has_value());
  }
  // The first fill may be over before the run sets the observer.
  CHECK(blind.fills >= kEpochs);
  CHECK(blind.fills <= kEpochs + 1);

  for (const std::string& data : {kSplit, kOwnFiles}) {
    CAPTURE(data);
    const Trained seeing = train(job_with(data), root.path());
    CHECK(seeing.summary.status == RunStatus::kCompleted);
    CHECK(seeing.summary.skipped_examples == 1);
    REQUIRE(seeing.rows.size() == kEpochs);
    for (const jobs::EpochRow& row : seeing.rows) {
      CHECK_FALSE(row.test.value("accuracy").has_value());
      CHECK_FALSE(row.test.value("loss").has_value());
      CHECK(row.validation.value("accuracy").has_value());
      CHECK(row.validation.value("loss").has_value());
    }
    CHECK(seeing.summary.test.value("accuracy").has_value());
    CHECK(seeing.summary.test.value("loss").has_value());
    CHECK_FALSE(seeing.summary.best_test.has_value());
    CHECK(seeing.summary.best_validation.has_value());
    CHECK(seeing.fills >= kEpochs + 1);
    CHECK(seeing.fills <= kEpochs + 3);
  }
}

TEST_CASE("the validation set changes no byte of the model, and evaluation gives the reported test accuracy",
          "[training]") {
  const TemporaryDirectory root;
  write_data(root.path());
  const fs::path blind = root / "blind";
  const fs::path seeing = root / "seeing";
  for (const fs::path& output : {blind, seeing}) fs::create_directories(output);
  const Trained without = train(job_with(images("")), root.path(), blind);
  const Trained with = train(job_with(kOwnFiles), root.path(), seeing);
  CHECK(without.summary.model_sha256 == with.summary.model_sha256);
  CHECK(without.summary.test.value("accuracy") == with.summary.test.value("accuracy"));
  CHECK(without.summary.test.value("loss") == with.summary.test.value("loss"));
  CHECK(without.rows.back().train.value("loss") == with.rows.back().train.value("loss"));
  jobs::RunContext context;
  context.data_root = root.path().string();
  const jobs::EvaluationResult again =
      jobs::evaluate_run(job_with(kOwnFiles), (seeing / "model.safetensors").string(), "", context);
  CHECK(again.scores.value("accuracy") == with.summary.test.value("accuracy"));
  CHECK(again.scores.value("loss") == with.summary.test.value("loss"));
  const jobs::EvaluationResult validation =
      jobs::evaluate_run(job_with(kOwnFiles), (seeing / "model.safetensors").string(), "", context,
                         {.set = jobs::EvaluationSet::kValidation});
  CHECK(validation.scores.value("accuracy") == with.summary.validation.value("accuracy"));
  CHECK(validation.examples == 18);
}

TEST_CASE("patience ends a run by the validation set, and the test set is still read once", "[training]") {
  const TemporaryDirectory root;
  write_data(root.path());
  const Trained early = train(
      job_with(kOwnFiles, {"training.patience_epochs=1", "training.min_improvement=1", "learning_rate.base=1e-4"}),
      root.path());
  CHECK(early.rows.size() == 2);
  CHECK(early.summary.status == RunStatus::kCompleted);
  CHECK(early.summary.skipped_examples == 1);
  CHECK(early.summary.test.value("accuracy").has_value());
}

TEST_CASE("a run that is stopped and one that goes on from there each read the test set once, at their ends",
          "[training]") {
  const TemporaryDirectory root;
  write_data(root.path());
  const jobs::JobOptions job = job_with(kOwnFiles);
  fs::create_directories(root / "whole");
  const Trained whole = train(job, root.path(), root / "whole");

  const fs::path output = root / "parts";
  std::vector<jobs::EpochRow> rows;
  RunSummary last;
  for (const int stops_after : {2, 0}) {
    jobs::RunDirectory directory(output, job.name, jobs::ExistingRun::kContinue);
    auto point = jobs::newest_resume_point(output, job, [](const std::string&) {});
    directory.continue_from(point ? &point->saved : nullptr);
    Listener listener(stops_after);
    jobs::RunContext context;
    context.data_root = root.path().string();
    context.output_directory = output.string();
    context.observers = {&directory, &listener};
    context.stop_signal = &listener.signal;
    context.log_bytes = [&] { return directory.log_bytes(); };
    if (point) context.resumed = &point->saved;
    last = jobs::train(job, context);
    rows.insert(rows.end(), listener.rows.begin(), listener.rows.end());
    if (stops_after != 0) {
      CHECK(last.status == RunStatus::kStopped);
      CHECK(last.skipped_examples == 1);
      CHECK(last.test.value("accuracy").has_value());
      CHECK(last.validation.value("accuracy").has_value());
    }
  }
  CHECK(last.status == RunStatus::kCompleted);
  CHECK(last.skipped_examples == 1);  // the look at the end of the stopped process came after its checkpoint
  CHECK(last.model_sha256 == whole.summary.model_sha256);
  CHECK(last.test.value("accuracy") == whole.summary.test.value("accuracy"));
  CHECK(last.test.value("loss") == whole.summary.test.value("loss"));
  REQUIRE(rows.size() == whole.rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].epoch == whole.rows[i].epoch);
    CHECK(rows[i].train.value("loss") == whole.rows[i].train.value("loss"));
    CHECK(rows[i].validation.value("loss") == whole.rows[i].validation.value("loss"));
    CHECK(rows[i].validation.value("accuracy") == whole.rows[i].validation.value("accuracy"));
    CHECK_FALSE(rows[i].test.value("loss").has_value());
  }
}

TEST_CASE("a run that diverges reports the test set of its last finite model", "[training]") {
  const TemporaryDirectory root;
  write_data(root.path());
  const Trained diverged = train(job_with(kOwnFiles, {"model={zoo { mlp { hidden: 16 } }}", "learning_rate.base=1000",
                                                      "data.normalization.stddev=1e-6"}),
                                 root.path());
  CHECK(diverged.summary.status == RunStatus::kDiverged);
  CHECK(diverged.summary.skipped_examples == 1);
  CHECK(diverged.summary.test.value("accuracy").has_value());
  CHECK(diverged.summary.validation.value("accuracy").has_value());
}

TEST_CASE("a run goes on from a checkpoint only with the same validation files", "[training]") {
  const TemporaryDirectory root;
  write_data(root.path());
  const jobs::JobOptions job = job_with(kOwnFiles);
  const fs::path output = root / "run";
  fs::create_directories(output);
  train(job_with(kOwnFiles, {"training.max_epochs=1"}), root.path(), output);
  const auto resume = [&] {
    auto point = jobs::newest_resume_point(output, job, [](const std::string&) {});
    REQUIRE(point.has_value());
    jobs::RunContext context;
    context.data_root = root.path().string();
    context.output_directory = output.string();
    context.resumed = &point->saved;
    return jobs::train(job, context);
  };
  write_folder(root / "folders/val", 18, 101);
  try {
    resume();
    FAIL("the run went on with another validation set");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    CHECK_THAT(error.what(), ContainsSubstring("the validation set has changed since then"));
  }
  write_folder(root / "folders/val", 18, 100);
  CHECK(resume().status == RunStatus::kCompleted);
}

}  // namespace arbalest::tests
