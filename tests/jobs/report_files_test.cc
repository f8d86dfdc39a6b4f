// The files of a run: metrics.jsonl, summary.json, job.txtpb, and no partial files.
#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <limits>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "engine/base/error.h"
#include "report/json.h"
#include "report/output_directory.h"
#include "report/run_directory.h"
#include "saved_model/atomic_file.h"
#include "tests/jobs/reported_run.h"
#include "tests/support/catch.h"
#include "tests/support/metrics.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

using engine::ErrorKind;
using nlohmann::ordered_json;
using tests::TemporaryDirectory;
namespace fs = std::filesystem;

std::vector<std::string> names_of(const ordered_json& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

std::vector<std::string> files_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("atomic file: replaces the old file only when it is complete") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    CHECK(tests::read_text(path) == "old");
    file.commit();
    CHECK(tests::read_text(path) == "new");
  }
  {
    AtomicFile file(path);
    file.write("never finished");
  }
  CHECK(tests::read_text(path) == "new");
  CHECK(files_in(directory.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("atomic file: a full disk keeps the old file and leaves no part of the new one") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "file";
  write_file(path, "old");
  {
    const FileSizeLimit limit(4096);
    CHECK(failure([&] { write_file(path, std::string(10'000, 'x')); }) == ErrorKind::kOutOfMemory);
  }
  CHECK(tests::read_text(path) == "old");
  CHECK(files_in(directory.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("files: other failed writes are not reported as a full disk") {
  const TemporaryDirectory directory;
  CHECK(failure([&] { write_file(directory / "none/file", "x"); }) == ErrorKind::kInternal);
}

TEST_CASE("report: epoch rows and the summary have the documented names") {
  CHECK(names_of(to_json(some_row())) ==
        std::vector<std::string>{"epoch", "batch", "train_loss", "train_accuracy", "train_top5_accuracy", "test_loss",
                                 "test_accuracy", "test_top5_accuracy", "images_per_second", "elapsed_seconds",
                                 "learning_rate", "learners_per_device", "replica_distance", "replica_spread",
                                 "training_seconds", "evaluation_seconds", "host_microseconds_per_step"});
  const ordered_json summary = to_json(some_summary());
  for (const char* name : {"status", "test_accuracy", "test_top5_accuracy", "best_test_accuracy", "epochs", "examples",
                           "train_seconds", "time_to_accuracy_seconds", "images_per_second", "learners",
                           "learners_per_device", "devices", "precision", "seed", "model_sha256"}) {
    CHECK(summary.contains(name));
  }
  CHECK(summary["status"] == "completed");
  CHECK(summary["time_to_accuracy_seconds"].is_null());
}

TEST_CASE("report: start, rows and summary have the size of teams if there are any") {
  RunStart start = some_start();
  EpochRow row = some_row();
  RunSummary summary = some_summary();
  const auto check = [&](auto& of) {
    CHECK_FALSE(to_json(of).contains("team"));
    of.largest_team = 8;
    CHECK(to_json(of).at("team") == 8);
  };
  check(start);
  check(row);
  check(summary);
}

TEST_CASE("report: rows, summary and evaluation have each metric that the model names") {
  const dataflow::Metrics metrics = tests::classifier_metrics(10, dataflow::AccuracyLayer({3}));
  RunStart start = some_start();
  start.metrics = metrics;
  CHECK(to_json(start)["metrics"] == ordered_json::array({"loss", "accuracy", "top3_accuracy"}));
  EpochRow row = some_row();
  row.train = Scores(metrics, {{1, 2, 3}}, 4);
  row.validation = Scores(metrics, {{1, 2, 4}}, 4);
  CHECK(to_json(row)["train_top3_accuracy"] == 0.75);
  CHECK(to_json(row)["validation_top3_accuracy"] == 1.0);
  RunSummary summary = some_summary();
  summary.metrics = metrics;
  CHECK(to_json(summary).at("test_top3_accuracy").is_null());
  summary.test = row.train;
  CHECK(to_json(summary)["test_top3_accuracy"] == 0.75);
  CHECK(to_json(EvaluationResult{.scores = row.train, .examples = 4})["test_top3_accuracy"] == 0.75);
}

TEST_CASE("report: regression models have an RMSE in place of accuracies") {
  EpochRow row = some_row();
  row.train = Scores(tests::ratings_metrics(), {}, 0);
  row.test = Scores(tests::ratings_metrics(), {{0.25}}, 1);
  CHECK(names_of(to_json(row)).at(5) == "test_rmse");
  CHECK(to_json(row)["test_rmse"] == 0.5);
  CHECK_FALSE(to_json(row).contains("test_accuracy"));
  CHECK_FALSE(to_json(row).contains("test_top5_accuracy"));
  row.test.set("rmse", std::numeric_limits<double>::quiet_NaN());  // like the loss
  CHECK(to_json(row)["test_rmse"].is_null());

  RunSummary summary = some_summary();
  summary.metrics = tests::ratings_metrics();
  CHECK(to_json(summary)["test_rmse"].is_null());
  summary.test.set("rmse", 0.5);
  summary.best_test = 0.25;
  CHECK(to_json(summary)["test_rmse"] == 0.5);
  CHECK(to_json(summary)["best_test_rmse"] == 0.25);
  for (const char* field : {"test_accuracy", "test_top5_accuracy", "best_test_accuracy"}) {
    CHECK_FALSE(to_json(summary).contains(field));
  }
  const ordered_json evaluation =
      to_json(EvaluationResult{.scores = Scores(tests::ratings_metrics(), {{0.25}}, 1), .examples = 7});
  CHECK(names_of(evaluation) == std::vector<std::string>{"test_rmse", "test_loss", "examples"});
}

TEST_CASE("report: a run with a validation set has its accuracy and names the set of the time to accuracy") {
  CHECK(to_json(some_start())["accuracy_set"] == "test");
  CHECK(to_json(some_summary())["accuracy_set"] == "test");
  CHECK_FALSE(to_json(some_summary()).contains("validation_accuracy"));
  CHECK_FALSE(to_json(some_row()).contains("validation_loss"));
  EpochRow row = some_row();
  row.validation = row.test;
  row.test = {};
  row.validation.set("accuracy", 0.75);
  const ordered_json json = to_json(row);
  const std::vector<std::string> names = names_of(json);
  CHECK(std::vector<std::string>(names.begin() + 5, names.begin() + 9) ==
        std::vector<std::string>{"validation_loss", "validation_accuracy", "validation_top5_accuracy",
                                 "images_per_second"});
  CHECK(json["validation_loss"] == 0.5);
  CHECK(json["validation_accuracy"] == 0.75);
  CHECK_FALSE(json.contains("validation_rmse"));
  CHECK(row.decisive().value("accuracy") == 0.75);
  CHECK(row.decisive().loss() == 0.5);

  RunStart start = some_start();
  RunSummary summary = some_summary();
  start.accuracy_set = summary.accuracy_set = EvaluationSet::kValidation;
  CHECK(to_json(start)["accuracy_set"] == "validation");
  CHECK(to_json(summary)["accuracy_set"] == "validation");
  for (const char* field :
       {"validation_accuracy", "best_validation_accuracy", "validation_top5_accuracy", "validation_loss"}) {
    CHECK(to_json(summary).at(field).is_null());  // not measured
  }
  summary.validation.set("accuracy", 0.5);
  summary.best_validation = 0.625;
  summary.validation.set("loss", 0.25);
  CHECK(to_json(summary)["validation_accuracy"] == 0.5);
  CHECK(to_json(summary)["best_validation_accuracy"] == 0.625);
  CHECK(to_json(summary)["validation_loss"] == 0.25);
  CHECK(to_json(summary)["test_accuracy"] == 0.1 + 0.2);

  summary.metrics = tests::ratings_metrics();
  summary.validation.set("rmse", 2.0);
  CHECK(to_json(summary)["validation_rmse"] == 2.0);
  CHECK(to_json(summary)["best_validation_rmse"] == 0.625);
  CHECK_FALSE(to_json(summary).contains("validation_accuracy"));
  row.validation.set("rmse", std::numeric_limits<double>::quiet_NaN());
  CHECK(to_json(row).at("validation_rmse").is_null());

  const ordered_json evaluation = to_json(EvaluationResult{
      .set = EvaluationSet::kValidation, .scores = Scores(tests::classifier_metrics(), {{1, 2, 3}}, 4), .examples = 7});
  CHECK(names_of(evaluation) ==
        std::vector<std::string>{"validation_accuracy", "validation_top5_accuracy", "validation_loss", "examples"});
}

TEST_CASE("report: a value that was not measured is null, not zero") {
  RunSummary summary = some_summary();
  summary.test.set("accuracy", 0.0);
  summary.test.set("loss", 0.0);
  summary.best_test = 0.0;
  summary.test.set("top5_accuracy", 0.0);
  CHECK(to_json(some_row()).at("test_top5_accuracy").is_null());
  for (const char* field : {"test_accuracy", "test_top5_accuracy", "test_loss", "best_test_accuracy"}) {
    INFO(field);
    CHECK(to_json(summary)[field] == 0.0);
    CHECK(to_json(RunSummary{})[field].is_null());
  }
}

TEST_CASE("report: learners per device are one number if all devices have the same") {
  CHECK(to_json(some_summary())["learners_per_device"] == 1);
  CHECK(to_json(some_row())["learners_per_device"] == ordered_json::array({2, 1}));
}

TEST_CASE("report: numbers are written and read back exactly") {
  const ordered_json read = ordered_json::parse(to_json(some_summary()).dump());
  CHECK(read["test_accuracy"].get<double>() == 0.1 + 0.2);
  CHECK(read["seed"].get<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("report: non-finite scores and distances are null, other non-finite values are errors") {
  EpochRow row = some_row();
  row.replica_distance = std::numeric_limits<double>::quiet_NaN();
  row.train.set("loss", *row.replica_distance);
  row.test.set("loss", *row.replica_distance);
  const ordered_json json = to_json(row);
  CHECK(json["train_loss"].is_null());
  CHECK(json["test_loss"].is_null());
  CHECK(json["replica_distance"].is_null());
  row.learning_rate = std::numeric_limits<double>::quiet_NaN();
  CHECK(failure([&] { to_json(row); }) == ErrorKind::kInternal);
  RunSummary summary = some_summary();
  summary.images_per_second = std::numeric_limits<double>::infinity();
  CHECK(failure([&] { to_json(summary); }) == ErrorKind::kInternal);
}

TEST_CASE("run directory: has job, metrics and summary, and metrics lines are written during the run") {
  const TemporaryDirectory parent;
  const fs::path path = parent / "some/run";
  RunDirectory directory(path, "trial");
  CHECK(files_in(path) == std::vector<std::string>{"metrics.jsonl"});
  directory.on_start(some_start());
  directory.on_epoch(some_row());
  CHECK(files_in(path) == std::vector<std::string>{"job.txtpb", "metrics.jsonl", "tensorboard"});
  CHECK(tests::read_text(path / "job.txtpb") == some_start().job_text);

  std::istringstream lines(tests::read_text(path / "metrics.jsonl"));
  std::string line;
  REQUIRE(std::getline(lines, line));
  CHECK(ordered_json::parse(line)["event"] == "start");
  REQUIRE(std::getline(lines, line));
  CHECK(ordered_json::parse(line)["event"] == "epoch");
  CHECK(ordered_json::parse(line)["test_accuracy"].get<double>() == 0.1 + 0.2);
  CHECK_FALSE(std::getline(lines, line));

  directory.on_finish(some_summary());
  CHECK(ordered_json::parse(tests::read_text(path / "summary.json")) == to_json(some_summary()));
}

TEST_CASE("run directory: a tuned run's directory has the numbers of learners from the start") {
  const TemporaryDirectory parent;
  RunStart start = some_start();
  start.is_tuned = true;
  start.learners_per_device = {2};
  start.learner_steps = {{0, {2}}};
  RunDirectory directory(parent / "run", "trial");
  directory.on_start(start);
  CHECK_THAT(tests::read_text(parent / "run/replay.txtpb"),
             ContainsSubstring("schedule") && ContainsSubstring("learners: 2"));
  const autotuner::Evidence evidence{.rate = 900.5,
                                     .windows = 9,
                                     .noise = 0.02,
                                     .best_learners = 2,
                                     .best_rate = 1000.25,
                                     .probes = 3,
                                     .probe_limit = 6,
                                     .measured_windows = 31,
                                     .disturbed_windows = 4,
                                     .lost = 0.125,
                                     .noise_scale = 64.0,
                                     .efficiency = 0.5};
  directory.on_resize({.batch = 12, .from = {2}, .to = {4}, .reason = "why", .evidence = evidence});
  CHECK_THAT(tests::read_text(parent / "run/replay.txtpb"),
             ContainsSubstring("at_batch: 12") && ContainsSubstring("learners: 4"));
  std::istringstream lines(tests::read_text(parent / "run/metrics.jsonl"));
  std::string line;
  while (std::getline(lines, line) && !line.starts_with(R"({"event":"resize")")) continue;
  const ordered_json row = ordered_json::parse(line);
  CHECK(row.at("reason") == "why");
  CHECK(row.at("evidence") == ordered_json{{"images_per_second", 900.5},
                                           {"windows", 9},
                                           {"noise", 0.02},
                                           {"best_learners", 2},
                                           {"best_images_per_second", 1000.25},
                                           {"probes", 3},
                                           {"probe_limit", 6},
                                           {"measured_windows", 31},
                                           {"disturbed_windows", 4},
                                           {"lost", 0.125},
                                           {"noise_scale", 64.0},
                                           {"efficiency", 0.5},
                                           {"goodput", 450.25},
                                           {"best_goodput", nullptr}});
  CHECK_FALSE(row.contains("team"));  // where it is not searched
  directory.on_resize(
      {.batch = 20, .from = {4}, .to = {4}, .from_team = 1, .to_team = 2, .reason = "why", .evidence = {}});
  CHECK_THAT(tests::read_text(parent / "run/metrics.jsonl"), ContainsSubstring(R"("from_team":1,"team":2)"));
}

TEST_CASE("run directory: a finished run has the hash and accuracy of the saved model") {
  const TemporaryDirectory directory;
  CHECK_FALSE(read_summary(directory.path()).has_value());
  RunSummary summary = some_summary();
  summary.model_sha256 = "abc123";
  tests::write_text(directory / kSummaryFile, to_json(summary).dump());
  REQUIRE(read_summary(directory.path()).has_value());
  CHECK(read_summary(directory.path())->model_sha256 == "abc123");
  CHECK(read_summary(directory.path())->test.value("accuracy") == 0.1 + 0.2);
  summary.test.set("accuracy", {});
  tests::write_text(directory / kSummaryFile, to_json(summary).dump());
  CHECK_FALSE(read_summary(directory.path())->test.value("accuracy").has_value());
  for (const char* damaged : {"", "{", "[]", "{}", R"({"model_sha256": 3})"}) {
    INFO(damaged);
    tests::write_text(directory / kSummaryFile, damaged);
    CHECK(failure([&] { read_summary(directory.path()); }) == ErrorKind::kData);
  }
  fs::remove(directory / kSummaryFile);
  fs::create_directory(directory / kSummaryFile);
  CHECK_THROWS_WITH(read_summary(directory.path()), ContainsSubstring("summary.json' is damaged: it cannot be read"));
}

TEST_CASE("run directory: a run that never started leaves only what existed before") {
  const TemporaryDirectory parent;
  fs::create_directory(parent / "mine");
  for (const char* path : {"run", "some/where/run", "mine/run", "mine/run/"}) {
    INFO(path);
    {
      RunDirectory directory(parent / path, "trial");
      CHECK(fs::exists(parent / path));
      RunSummary failed = some_summary();
      failed.status = RunStatus::kFailed;
      directory.on_finish(failed);
    }
    CHECK(files_in(parent.path()) == std::vector<std::string>{"mine"});
    CHECK(fs::is_empty(parent / "mine"));
  }
  const std::string too_long(300, 'x');
  CHECK(failure([&] { RunDirectory(parent / "some" / too_long, "trial"); }) == ErrorKind::kUsage);
  CHECK(files_in(parent.path()) == std::vector<std::string>{"mine"});
}

TEST_CASE("run directory: a run without a directory name that never started leaves no runs/") {
  const TemporaryDirectory parent;
  const fs::path before = fs::current_path();
  fs::current_path(parent.path());
  {
    const RunDirectory first("", "trial");
    { const RunDirectory second("", "trial"); }
    CHECK(fs::exists(first.path() / "metrics.jsonl"));
  }
  CHECK(fs::is_empty(parent.path()));
  fs::current_path(before);
}

TEST_CASE("output directory: existing directories stay, new empty ones are removed") {
  const TemporaryDirectory parent;
  {
    const OutputDirectory first(parent / "some/one/", "tune-trial");
    CHECK(first.is_new());
    CHECK(first.path() == parent / "some/one");
    const OutputDirectory second(parent / "some/one", "tune-trial");
    CHECK_FALSE(second.is_new());
  }
  CHECK(fs::is_empty(parent.path()));
  {
    const OutputDirectory used(parent / "some/one", "tune-trial");
    tests::write_text(used.path() / "tune.json", "{}");
  }
  CHECK(files_in(parent / "some/one") == std::vector<std::string>{"tune.json"});
}

TEST_CASE("run directory: of two simultaneous runs, one gets the directory and the other changes nothing") {
  const TemporaryDirectory parent;
  const fs::path path = parent / "run";
  RunDirectory first(path, "trial");
  CHECK(failure([&] { RunDirectory(path, "other"); }) == ErrorKind::kUsage);
  first.on_start(some_start());
  CHECK(failure([&] { RunDirectory(path, "other"); }) == ErrorKind::kUsage);
  CHECK(files_in(path) == std::vector<std::string>{"job.txtpb", "metrics.jsonl", "tensorboard"});

  // Many runs start at the same moment.
  std::atomic<int> winners{0};
  std::atomic<int> losers{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      go.wait(false);
      std::unique_ptr<RunDirectory> directory;
      const auto error = failure([&] { directory = std::make_unique<RunDirectory>(parent / "race/run", "trial"); });
      if (directory) directory->on_start(some_start());
      ++(directory ? winners : losers);
      if (error && *error != ErrorKind::kUsage) losers += 100;
    });
  }
  go = true;
  go.notify_all();
  for (std::thread& thread : threads) thread.join();
  CHECK(winners == 1);
  CHECK(losers == 7);
}

TEST_CASE("run directory: refused if it contains a run, cannot be created or cannot be written") {
  const TemporaryDirectory parent;
  fs::create_directory(parent / "used");
  tests::write_text(parent / "used/model.safetensors", "precious");
  CHECK(failure([&] { RunDirectory(parent / "used", "trial"); }) == ErrorKind::kUsage);
  CHECK(tests::read_text(parent / "used/model.safetensors") == "precious");

  fs::create_directory(parent / "other");
  tests::write_text(parent / "other/notes.txt", "mine");
  CHECK_FALSE(failure([&] { RunDirectory(parent / "other", "trial"); }));
  CHECK(files_in(parent / "other") == std::vector<std::string>{"notes.txt"});

  tests::write_text(parent / "file", "");
  CHECK(failure([&] { RunDirectory(parent / "file", "trial"); }) == ErrorKind::kUsage);
  CHECK(failure([&] { RunDirectory(parent / "file/below", "trial"); }) == ErrorKind::kUsage);
  CHECK(failure([&] { RunDirectory("/proc/arbalest", "trial"); }) == ErrorKind::kUsage);
  CHECK(failure([&] { RunDirectory("/proc", "trial"); }) == ErrorKind::kUsage);
}

TEST_CASE("run directory: runs of a job that start in the same second get different directories") {
  const TemporaryDirectory parent;
  const fs::path before = fs::current_path();
  fs::current_path(parent.path());
  {
    const RunDirectory first("", "trial");
    const RunDirectory second("", "trial");
    const RunDirectory third("", "trial");
    CHECK(first.path() != second.path());
    CHECK(second.path() != third.path());
    CHECK_THAT(first.path().string(), ContainsSubstring("runs/trial-20"));
    CHECK(fs::is_directory(third.path()));
  }
  fs::current_path(before);
}

}  // namespace arbalest::jobs
