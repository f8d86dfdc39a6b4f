// Whole runs that stop and go on from a checkpoint, through jobs::train.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "checkpoint/best_model.h"
#include "checkpoint/checkpoint_saver.h"
#include "checkpoint/checkpoint_store.h"
#include "engine/base/error.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;
using jobs::RunStatus;

jobs::JobOptions job_with(const std::vector<std::string>& settings) {
  return short_job("logistic-digits.txtpb", settings);
}

std::vector<std::string> events_of(const fs::path& output) {
  std::vector<std::string> events;
  std::ifstream file(output / jobs::kMetricsFile);
  for (std::string line; std::getline(file, line);) events.push_back(line.substr(10, line.find('"', 10) - 10));
  return events;
}

}  // namespace

TEST_CASE("a run that is stopped several times ends with the bytes of one that never stopped", "[checkpoint]") {
  const std::vector<std::vector<std::string>> variants = {
      {"synchronization={sma {}}"},
      {"synchronization={s_sgd {}}", "training.moving_average_epochs=0.2"},
      {"synchronization={local_sgd { period: 7 }}", "optimizer={adamw {}}", "learning_rate.base=0.001"},
      {"synchronization={sma {} switch { at_epoch: 1.5 learners: 1 local_sgd { period: 5 } }}"},
      {"learners.per_device={growth { to: 4 epochs: 2 }}", "synchronization={s_sgd {}}"},
      {"learners.per_device={schedule { step { learners: 1 } step { at_batch: 900 learners: 3 } }}"},
      {"data.validation.fraction=0.1", "learning_rate={base: 0.02 multistep { drop { epoch: 1.4 factor: 0.1 } }}"},
      {"learning_rate={base: 0.02 plateau { factor: 0.5 patience: 0 min_improvement: 1 cooldown: 1 }}"},
  };
  for (const auto& variant : variants) {
    CAPTURE(variant);
    const jobs::JobOptions job = job_with(variant);
    const TemporaryDirectory whole;
    const TemporaryDirectory parts;
    const Part expected = train_part(job, whole.path());
    REQUIRE(expected.summary.status == RunStatus::kCompleted);

    std::vector<jobs::EpochRow> rows;
    Part part;
    for (const int looks : {20, 60, 500, 700, 400, kNever}) {
      part = train_part(job, parts.path(), looks);
      rows.insert(rows.end(), part.rows.begin(), part.rows.end());
      if (looks != kNever) CHECK(part.summary.status == RunStatus::kStopped);
    }
    CHECK(part.summary.status == RunStatus::kCompleted);
    CHECK(part.summary.model_sha256 == expected.summary.model_sha256);
    CHECK(part.summary.test.value("accuracy") == expected.summary.test.value("accuracy"));
    CHECK(part.summary.best_test == expected.summary.best_test);
    CHECK(part.summary.best_validation == expected.summary.best_validation);
    CHECK(part.summary.examples == expected.summary.examples);
    CHECK(part.summary.epochs == 3);
    CHECK(part.summary.learners_per_device == expected.summary.learners_per_device);
    REQUIRE(rows.size() == expected.rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(rows[i].epoch == expected.rows[i].epoch);
      CHECK(rows[i].train.value("loss") == expected.rows[i].train.value("loss"));
      CHECK(rows[i].train.value("accuracy") == expected.rows[i].train.value("accuracy"));
      CHECK(rows[i].test.value("loss") == expected.rows[i].test.value("loss"));
      CHECK(rows[i].validation.value("loss") == expected.rows[i].validation.value("loss"));
      CHECK(rows[i].learning_rate == expected.rows[i].learning_rate);
      CHECK(rows[i].learners_per_device == expected.rows[i].learners_per_device);
    }
  }
}

TEST_CASE("the log of a resumed run has each epoch once, and a line for each resumption", "[checkpoint]") {
  const jobs::JobOptions job = job_with({"checkpoint.every_epochs=1"});
  const TemporaryDirectory output;
  const Part first = train_part(job, output.path(), 2200);
  CHECK(first.summary.status == RunStatus::kStopped);
  // The run is killed after the checkpoint of the stop: lines that it wrote later are cut off.
  std::ofstream(output.path() / jobs::kMetricsFile, std::ios::app) << R"({"event":"epoch","epoch":2})" << '\n';
  const Part second = train_part(job, output.path());
  REQUIRE(second.resumed);
  CHECK(second.resumed->epoch == Approx(first.summary.epochs_begun));
  CHECK(second.resumed->elapsed_seconds <= first.summary.train_seconds);
  CHECK(second.summary.train_seconds > second.resumed->elapsed_seconds);
  std::vector<std::string> events = events_of(output.path());
  CHECK(std::ranges::count(events, "start") == 1);
  CHECK(std::ranges::count(events, "epoch") == 3);
  CHECK(std::ranges::count(events, "resume") == 1);
  CHECK(events.back() == "finish");
}

TEST_CASE("a tuned run goes on with the number of learners that it had", "[checkpoint]") {
  const jobs::JobOptions job = job_with({"learners.per_device={auto { max: 4 }}"});
  const TemporaryDirectory output;
  const Part first = train_part(job, output.path(), 1200);
  const Part second = train_part(job, output.path());
  REQUIRE(second.resumed);
  CHECK(second.resumed->from == first.summary.learners_per_device);
  CHECK(second.resumed->to == first.summary.learners_per_device);
  CHECK(second.summary.status == RunStatus::kCompleted);
}

TEST_CASE("a run resumed with another number of learners trains as if its schedule changed there", "[checkpoint]") {
  const TemporaryDirectory stopped;
  // A checkpoint after every 100 mini-batches; the one at 300 is kept by stopping right after it.
  const std::vector<std::string> common = {"synchronization={sma {}}",
                                           "checkpoint={every_batches: 300 keep_last: 100}"};
  std::vector<std::string> before = common;
  before.emplace_back("training.max_epochs=1");
  CHECK(train_part(job_with(before), stopped.path()).summary.status == RunStatus::kCompleted);
  const jobs::JobOptions after = job_with([&] {
    std::vector<std::string> settings = common;
    settings.emplace_back("learners.per_device.fixed=3");
    return settings;
  }());
  const fs::path kept = jobs::checkpoints_of(stopped.path()) / "000000000300";
  auto point = jobs::resume_point_at(kept, after, [](const std::string&) {});
  const TemporaryDirectory resumed;
  jobs::RunContext context;
  context.output_directory = resumed.path().string();
  context.resumed = &point.saved;
  const jobs::RunSummary summary = jobs::train(after, context);
  CHECK(summary.learners_per_device == std::vector<int>{3});

  std::vector<std::string> scheduled = common;
  scheduled.emplace_back("learners.per_device={schedule { step { learners: 2 } step { at_batch: 300 learners: 3 } }}");
  const TemporaryDirectory whole;
  CHECK(run(job_with(scheduled), whole.path().string()).model_sha256 == summary.model_sha256);
}

TEST_CASE("checkpoints come when the job asks for them, and only the newest and the best stay", "[checkpoint]") {
  const auto kept = [](const fs::path& output) {
    std::vector<std::uint64_t> batches;
    for (const auto& checkpoint : jobs::list_checkpoints(jobs::checkpoints_of(output))) {
      batches.push_back(checkpoint.batches);
    }
    return batches;
  };
  // 625 mini-batches an epoch.
  const TemporaryDirectory by_batches;
  const Part part =
      train_part(job_with({"checkpoint={every_batches: 500 keep_last: 2 keep_best: 0}"}), by_batches.path());
  CHECK(part.warnings.empty());
  // A checkpoint that falls due while one is being written comes right after it.
  CHECK(part.checkpoints.front().batch == 500);
  CHECK(part.checkpoints.back().batch == 1876);
  CHECK(kept(by_batches.path()).size() == 2);
  CHECK(kept(by_batches.path()).back() == 1876);
  CHECK_FALSE(fs::exists(by_batches.path() / jobs::kBestModel));

  const TemporaryDirectory by_epochs;
  const Part epochs = train_part(job_with({"checkpoint={every_epochs: 2 keep_last: 5}"}), by_epochs.path());
  CHECK(kept(by_epochs.path()) == std::vector<std::uint64_t>{1250, 1876});
  CHECK(fs::exists(by_epochs.path() / jobs::kBestModel));

  const TemporaryDirectory none;
  train_part(job_with({"checkpoint.keep_last=0"}), none.path());
  CHECK_FALSE(fs::exists(jobs::checkpoints_of(none.path())));
}

TEST_CASE("a checkpoint of an epoch's end holds the model that was evaluated there", "[checkpoint]") {
  const TemporaryDirectory output;
  const Part part =
      train_part(job_with({"checkpoint.every_epochs=1", "training.moving_average_epochs=0.3"}), output.path());
  const auto last = jobs::list_checkpoints(jobs::checkpoints_of(output.path())).back();
  const auto saved = jobs::read_tensors(last, "model.safetensors");
  const auto model = jobs::read_safetensors((output.path() / jobs::kModelFile).string(), part.summary.model_sha256);
  REQUIRE(saved.size() == model.size());
  for (std::size_t i = 0; i < model.size(); ++i) CHECK(saved[i].values == model[i].values);
}

TEST_CASE("a changed job, other data and a finished run are told apart", "[checkpoint]") {
  const TemporaryDirectory output;
  const jobs::JobOptions job = job_with({"training.max_epochs=1"});
  train_part(job, output.path());
  const auto ignore = [](const std::string&) {};
  CHECK_THROWS_WITH(
      jobs::newest_resume_point(output.path(), job_with({"optimizer.sgd.momentum=0.5", "training.seed=3"}), ignore),
      ContainsSubstring("the job has changed") && ContainsSubstring("training.seed: 1 in the checkpoint, 3") &&
          ContainsSubstring("optimizer.sgd.momentum"));
  const auto point = jobs::newest_resume_point(output.path(), job, ignore);
  CHECK_THAT(jobs::completed(output.path(), point, job).text, ContainsSubstring("is complete (completed)"));
  CHECK(jobs::completed(output.path(), point, job_with({"training.max_epochs=2"})).text.empty());
  // More epochs go on where the run ended.
  const Part more = train_part(job_with({"training.max_epochs=2"}), output.path());
  REQUIRE(more.resumed);
  CHECK(more.resumed->epoch == Approx(1.0).margin(0.01));
  CHECK(more.summary.epochs == 2);

  jobs::SavedRun other = point->saved;
  const std::string data = other.origin.dataset;
  const std::size_t test = data.find('/');
  REQUIRE(test != std::string::npos);
  jobs::RunContext context;
  context.resumed = &other;
  other.origin.dataset = "another" + data.substr(test);
  CHECK_THROWS_WITH(jobs::train(job, context), ContainsSubstring("other data: the training set has changed"));
  other.origin.dataset = data.substr(0, test) + "/another";
  CHECK_THROWS_WITH(jobs::train(job, context), ContainsSubstring("other data: the test set has changed"));
  other.origin.dataset = data.substr(0, test);  // as older versions have saved it
  CHECK(jobs::train(job, context).status == RunStatus::kCompleted);
}

TEST_CASE("a run that was killed after it reached its target trains no further", "[checkpoint]") {
  const jobs::JobOptions job = job_with({"training.target_accuracy=0.7"});
  const TemporaryDirectory output;
  const Part first = train_part(job, output.path());
  REQUIRE(first.summary.status == RunStatus::kTargetReached);
  fs::remove(output.path() / jobs::kSummaryFile);
  fs::remove(output.path() / jobs::kModelFile);
  const Part second = train_part(job, output.path());
  CHECK(second.summary.status == RunStatus::kTargetReached);
  CHECK(second.summary.model_sha256 == first.summary.model_sha256);
  CHECK(second.summary.time_to_accuracy_seconds == first.summary.time_to_accuracy_seconds);
  CHECK(second.summary.examples == first.summary.examples);
  // A higher target has a time of its own.
  const Part higher = train_part(job_with({"training.target_accuracy=0.99"}), output.path());
  CHECK(higher.summary.status == RunStatus::kCompleted);
  CHECK_FALSE(higher.summary.time_to_accuracy_seconds);
}

TEST_CASE("a run that was killed after it reached its target in its last epoch has reached it", "[checkpoint]") {
  const jobs::JobOptions job = job_with({"training.target_accuracy=0.5", "training.max_epochs=1"});
  const TemporaryDirectory output;
  REQUIRE(train_part(job, output.path()).summary.status == RunStatus::kTargetReached);
  fs::remove(output.path() / jobs::kSummaryFile);
  CHECK(train_part(job, output.path()).summary.status == RunStatus::kTargetReached);
}

TEST_CASE("a run that went on past its end and was killed there is not complete", "[checkpoint]") {
  const jobs::JobOptions job = job_with({"training.target_accuracy=0.7"});
  const TemporaryDirectory output;
  REQUIRE(train_part(job, output.path()).summary.status == RunStatus::kTargetReached);
  const TemporaryDirectory kept;
  for (const char* file : {jobs::kSummaryFile, jobs::kModelFile}) fs::copy(output.path() / file, kept.path() / file);
  const jobs::JobOptions higher = job_with({"training.target_accuracy=0.99", "checkpoint.every_batches=100"});
  REQUIRE(train_part(higher, output.path(), 1000).summary.status == RunStatus::kStopped);
  // SIGKILL would have left the files of the first end.
  for (const char* file : {jobs::kSummaryFile, jobs::kModelFile}) {
    fs::copy(kept.path() / file, output.path() / file, fs::copy_options::overwrite_existing);
  }
  const auto ignore = [](const std::string&) {};
  CHECK(jobs::completed(output.path(), jobs::newest_resume_point(output.path(), higher, ignore), higher).text.empty());
  CHECK(train_part(higher, output.path()).summary.epochs == 3);
  CHECK_THAT(jobs::completed(output.path(), jobs::newest_resume_point(output.path(), higher, ignore), higher).text,
             ContainsSubstring("is complete"));
}

TEST_CASE("a run that went back from its end and was killed there is not complete", "[checkpoint]") {
  const jobs::JobOptions job = job_with({"training.target_accuracy=0.7", "checkpoint.every_batches=100"});
  const TemporaryDirectory output;
  const Part whole = train_part(job, output.path());
  REQUIRE(whole.summary.status == RunStatus::kTargetReached);
  const TemporaryDirectory kept;
  for (const char* file : {jobs::kSummaryFile, jobs::kModelFile}) fs::copy(output.path() / file, kept.path() / file);
  const fs::path first = jobs::list_checkpoints(jobs::checkpoints_of(output.path())).front().path;
  REQUIRE(train_part(job, output.path(), {.looks = 1, .from = first}).summary.status == RunStatus::kStopped);
  // SIGKILL would have left the files of the first end.
  for (const char* file : {jobs::kSummaryFile, jobs::kModelFile}) {
    fs::copy(kept.path() / file, output.path() / file, fs::copy_options::overwrite_existing);
  }
  const auto ignore = [](const std::string&) {};
  CHECK(jobs::completed(output.path(), jobs::newest_resume_point(output.path(), job, ignore), job).text.empty());
  CHECK(train_part(job, output.path()).summary.model_sha256 == whole.summary.model_sha256);
}

TEST_CASE("the summary of an earlier process goes before the model is replaced", "[checkpoint]") {
  const TemporaryDirectory output;
  train_part(job_with({"training.max_epochs=1"}), output.path());
  REQUIRE(fs::exists(output.path() / jobs::kSummaryFile));
  jobs::RunDirectory directory(output.path(), "logistic-digits", jobs::ExistingRun::kContinue);
  directory.on_save();
  CHECK_FALSE(fs::exists(output.path() / jobs::kSummaryFile));
  CHECK_NOTHROW(directory.on_save());
}

TEST_CASE("a job that names no learners goes on with those of the checkpoint on another machine", "[checkpoint]") {
  jobs::JobOptions job = job_with({"learners=default", "checkpoint.every_epochs=1"});
  REQUIRE_FALSE(job.learners_are_given);
  job.learners_per_device = {3};
  const TemporaryDirectory whole;
  const Part expected = train_part(job, whole.path());
  const TemporaryDirectory parts;
  REQUIRE(train_part(job, parts.path(), 1000).summary.status == RunStatus::kStopped);
  job.learners_per_device = {1};  // a machine with one core
  const Part resumed = train_part(job, parts.path());
  CHECK(resumed.summary.learners == 3);
  CHECK(resumed.summary.model_sha256 == expected.summary.model_sha256);
}

TEST_CASE("a run that goes on in another directory has a checkpoint there at once", "[checkpoint]") {
  const jobs::JobOptions job = job_with({});
  const TemporaryDirectory first;
  train_part(job, first.path(), 1000);
  auto point = jobs::newest_resume_point(first.path(), job, [](const std::string&) {});
  REQUIRE(point);
  const std::uint64_t batches = point->saved.training.batches;
  const TemporaryDirectory second;
  Watcher watcher({.looks = 1});  // stopped before its first round
  jobs::RunContext context;
  context.output_directory = second.path().string();
  context.observers = {&watcher};
  context.stop_signal = &watcher.signal;
  context.now = [&] { return watcher.now(); };
  context.measures_processor_time = false;
  context.resumed = &point->saved;
  jobs::train(job, context);
  REQUIRE_FALSE(watcher.checkpoints.empty());
  CHECK(watcher.checkpoints.front().batch == batches);
}

TEST_CASE("a directory with the checkpoints of another run is refused", "[checkpoint]") {
  const TemporaryDirectory output;
  train_part(job_with({"training.max_epochs=1"}), output.path());
  for (const char* file : {jobs::kJobFile, jobs::kModelFile, jobs::kMetricsFile, jobs::kSummaryFile}) {
    fs::remove(output.path() / file);
  }
  fs::remove_all(output.path() / jobs::kTensorBoardFolder);
  CHECK_THROWS_WITH(jobs::RunDirectory(output.path(), "logistic-digits"),
                    ContainsSubstring("holds a run already (checkpoints)"));
  CHECK_FALSE(fs::exists(output.path() / jobs::kMetricsFile));
}

TEST_CASE("a resumed run whose course no job can describe has no replay", "[checkpoint]") {
  const std::vector<std::string> settings = {"learners.per_device.fixed=3",
                                             "synchronization={sma {} switch { at_epoch: 1 s_sgd {} learners: 1 }}"};
  const TemporaryDirectory output;
  REQUIRE(train_part(job_with(settings), output.path(), 1800).summary.epochs_begun > 1.0);
  const Part resumed = train_part(job_with(settings), output.path());
  CHECK(resumed.summary.learners == 1);
  CHECK_FALSE(fs::exists(output.path() / jobs::kReplayFile));
}

TEST_CASE("the replay of a run that was resumed twice at one point tells its last course only", "[checkpoint]") {
  const std::vector<std::string> common = {"synchronization={sma {}}", "checkpoint={every_batches: 300 keep_last: 100}",
                                           "training.max_epochs=1"};
  const auto with = [&](const std::string& learners) {
    std::vector<std::string> settings = common;
    settings.push_back("learners.per_device.fixed=" + learners);
    return job_with(settings);
  };
  const TemporaryDirectory output;
  train_part(with("2"), output.path());
  const fs::path kept = jobs::checkpoints_of(output.path()) / "000000000300";
  const auto replay_after = [&](const std::string& learners) {
    train_part(with(learners), output.path(), {.looks = 1, .from = kept});
    return fs::exists(output / jobs::kReplayFile) ? read_text(output / jobs::kReplayFile) : "";
  };
  CHECK_THAT(replay_after("3"), ContainsSubstring("at_batch: 300") && ContainsSubstring("learners: 3"));
  const std::string second = replay_after("4");
  CHECK_THAT(second, ContainsSubstring("at_batch: 300") && ContainsSubstring("learners: 4"));
  CHECK(second.find("learners: 3") == std::string::npos);
  CHECK(replay_after("2").empty());
}

TEST_CASE("a target that was lowered below what is reached has a time", "[checkpoint]") {
  // The run had a higher target before, or none.
  for (const std::string before : {"training.target_accuracy=0.99", "training.seed=1"}) {
    CAPTURE(before);
    const TemporaryDirectory output;
    const Part first = train_part(job_with({before, "training.max_epochs=2"}), output.path());
    REQUIRE(first.summary.status == RunStatus::kCompleted);
    const Part lower = train_part(job_with({"training.target_accuracy=0.5"}), output.path());
    CHECK(lower.summary.status == RunStatus::kTargetReached);
    CHECK(lower.rows.empty());
    CHECK(lower.summary.time_to_accuracy_seconds == first.rows.back().elapsed_seconds);
  }
}

TEST_CASE("a run ends when its score stops improving, also if it is resumed meanwhile", "[checkpoint]") {
  // With a learning rate of almost zero after epoch 2, no later epoch improves by a point.
  const std::vector<std::string> settings = {"training.max_epochs=9", "training.patience_epochs=2",
                                             "training.min_improvement=0.01",
                                             "learning_rate={base: 0.02 multistep { drop { epoch: 2 factor: 1e-6 } }}"};
  const TemporaryDirectory whole;
  const Part expected = train_part(job_with(settings), whole.path());
  CHECK(expected.summary.status == RunStatus::kCompleted);
  CHECK_THAT(expected.summary.message, ContainsSubstring("ended early: 2 epochs without an improvement"));
  CHECK(expected.summary.epochs < 9);
  CHECK(expected.summary.epochs >= 3);
  double best = 0.0;
  for (std::size_t i = 0; i + 2 < expected.rows.size(); ++i)
    best = std::max(best, expected.rows[i].test.value("accuracy").value());
  for (std::size_t i = expected.rows.size() - 2; i < expected.rows.size(); ++i) {
    CHECK(expected.rows[i].test.value("accuracy").value() < best + 0.01);
  }
  const TemporaryDirectory parts;
  CHECK(train_part(job_with(settings), parts.path(), 2000).summary.status == RunStatus::kStopped);
  const Part resumed = train_part(job_with(settings), parts.path());
  CHECK(resumed.summary.epochs == expected.summary.epochs);
  CHECK(resumed.summary.model_sha256 == expected.summary.model_sha256);
  // --resume=auto sees without any preparation that nothing is left.
  const auto completed = [&](std::vector<std::string> more) {
    more.insert(more.begin(), settings.begin(), settings.end());
    const jobs::JobOptions job = job_with(more);
    return jobs::completed(parts.path(), jobs::newest_resume_point(parts.path(), job, [](const auto&) {}), job).text;
  };
  CHECK_THAT(completed({}), ContainsSubstring("2 epochs without an improvement (training.patience_epochs)"));
  CHECK(completed({"training.patience_epochs=5"}).empty());
}

TEST_CASE("a run ends when its minutes of training are over, counted from its first start", "[checkpoint]") {
  // The clock moves by a millisecond at each look, so the run has 0.6 seconds: it ends within its first epoch. Its
  // preparation takes an hour.
  const jobs::JobOptions job = job_with({"training.max_minutes=0.01"});
  const TemporaryDirectory output;
  const Part first = train_part(job, output.path(), {.preparation_seconds = 3600.0});
  CHECK(first.summary.status == RunStatus::kCompleted);
  CHECK_THAT(first.summary.message, ContainsSubstring("training.max_minutes"));
  CHECK(first.summary.epochs == 0);
  CHECK(first.summary.examples > 1000);
  CHECK(first.summary.train_seconds > 3600.0);
  CHECK(first.summary.test.value("accuracy"));
  const auto point = jobs::newest_resume_point(output.path(), job, [](const std::string&) {});
  CHECK_THAT(jobs::completed(output.path(), point, job).text,
             ContainsSubstring("it has trained for 0.01 minutes (training.max_minutes)"));
  CHECK_THAT(jobs::nothing_left(*point, job).text, ContainsSubstring("(training.max_minutes)"));
  const Part second = train_part(job, output.path());
  CHECK(second.summary.examples == first.summary.examples);
  const Part longer = train_part(job_with({"training.max_minutes=0.02"}), output.path());
  CHECK(longer.summary.examples > first.summary.examples);
}

TEST_CASE("a failed save is a warning, and the run goes on", "[checkpoint]") {
  const TemporaryDirectory output;
  const jobs::JobOptions job = job_with({"checkpoint={every_batches: 400}"});
  const auto block = [&] { std::ofstream(output.path() / "checkpoints") << "a file is in the way"; };
  const Part part = train_part(job, output.path(), {.at_start = block});
  CHECK(part.summary.status == RunStatus::kCompleted);
  REQUIRE_FALSE(part.warnings.empty());
  CHECK_THAT(part.warnings.front(), ContainsSubstring("was not saved") && ContainsSubstring("the run goes on"));
}

}  // namespace arbalest::tests
