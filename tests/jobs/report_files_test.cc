// What a run leaves on disk: metrics.jsonl, summary.json, job.txtpb, and nothing half-written.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <limits>
#include <sstream>

#include "engine/error.h"
#include "jobs/export/atomic_file.h"
#include "jobs/report/json.h"
#include "jobs/report/run_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

using engine::ErrorKind;
using nlohmann::ordered_json;
using tests::TemporaryDirectory;
namespace fs = std::filesystem;

JobOptions some_job() {
  JobOptions job;
  job.name = "trial";
  job.resolved_text = "name: \"trial\"\n";
  return job;
}

RunStart some_start() {
  RunStart start;
  start.job = "trial";
  start.devices = {"cpu:0-1", "cpu:2"};
  start.learners_per_device = {2, 1};
  return start;
}

EpochRow some_row() {
  EpochRow row;
  row.epoch = 1;
  row.test_accuracy = 0.1 + 0.2;  // 17 digits
  row.learners_per_device = {2, 1};
  return row;
}

RunSummary some_summary() {
  RunSummary summary;
  summary.job = "trial";
  summary.status = RunStatus::kCompleted;
  summary.test_accuracy = 0.1 + 0.2;
  summary.learners = 2;
  summary.learners_per_device = {1, 1};
  summary.devices = {"cpu:0", "cpu:1"};
  summary.seed = std::numeric_limits<std::uint64_t>::max();
  return summary;
}

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

std::optional<ErrorKind> failure(const std::function<void()>& action) {
  try {
    action();
  } catch (const engine::Error& error) {
    return error.kind();
  }
  return std::nullopt;
}

// Files cannot grow beyond `bytes` in this scope: a full disk, as far as a writer can tell.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    handler_ = signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

}  // namespace

TEST_CASE("atomic file: takes the place of the old file only when it is whole") {
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

TEST_CASE("atomic file: a disk that fills up leaves the old file and no trace of the new one") {
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

TEST_CASE("files: a write that fails for another reason is no lack of space") {
  const TemporaryDirectory directory;
  CHECK(failure([&] { write_file(directory / "none/file", "x"); }) == ErrorKind::kInternal);
  CHECK(failure([&] { MetricsLog(directory / "none/metrics.jsonl"); }) == ErrorKind::kInternal);
}

TEST_CASE("metrics: a line that does not reach the disk is an error") {
  const TemporaryDirectory directory;
  MetricsLog log(directory / "metrics.jsonl");
  const FileSizeLimit limit(10);
  CHECK(failure([&] { log.append("epoch", {{"text", std::string(100, 'x')}}); }) == ErrorKind::kOutOfMemory);
}

TEST_CASE("report: epoch rows and the summary have the documented names") {
  CHECK(names_of(to_json(some_row())) ==
        std::vector<std::string>{"epoch", "train_loss", "test_loss", "test_accuracy", "images_per_second",
                                 "elapsed_seconds", "learning_rate", "learners_per_device", "replica_distance"});
  const ordered_json summary = to_json(some_summary());
  for (const char* name :
       {"status", "test_accuracy", "best_test_accuracy", "epochs", "train_seconds", "time_to_accuracy_seconds",
        "images_per_second", "learners", "learners_per_device", "devices", "seed", "model_sha256"}) {
    CHECK(summary.contains(name));
  }
  CHECK(summary["status"] == "completed");
  CHECK(summary["time_to_accuracy_seconds"].is_null());
}

TEST_CASE("report: learners per device are one number where all devices have the same") {
  CHECK(to_json(some_summary())["learners_per_device"] == 1);
  CHECK(to_json(some_row())["learners_per_device"] == ordered_json::array({2, 1}));
}

TEST_CASE("report: numbers survive the way through a file to the last digit") {
  const ordered_json read = ordered_json::parse(to_json(some_summary()).dump());
  CHECK(read["test_accuracy"].get<double>() == 0.1 + 0.2);
  CHECK(read["seed"].get<std::uint64_t>() == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("report: only losses and distances may be null for want of a finite value") {
  EpochRow row = some_row();
  row.train_loss = row.test_loss = row.replica_distance = std::numeric_limits<double>::quiet_NaN();
  const ordered_json json = to_json(row);
  CHECK(json["train_loss"].is_null());
  CHECK(json["test_loss"].is_null());
  CHECK(json["replica_distance"].is_null());
  row.test_accuracy = std::numeric_limits<double>::quiet_NaN();
  CHECK(failure([&] { to_json(row); }) == ErrorKind::kInternal);
  RunSummary summary = some_summary();
  summary.images_per_second = std::numeric_limits<double>::infinity();
  CHECK(failure([&] { to_json(summary); }) == ErrorKind::kInternal);
}

TEST_CASE("run directory: keeps job, metrics and summary, and lines are there while the run goes on") {
  const TemporaryDirectory parent;
  const fs::path path = parent / "some/run";
  RunDirectory directory(path, some_job());
  CHECK(files_in(path).empty());
  directory.on_start(some_start());
  directory.on_epoch(some_row());
  CHECK(files_in(path) == std::vector<std::string>{"job.txtpb", "metrics.jsonl"});
  CHECK(tests::read_text(path / "job.txtpb") == some_job().resolved_text);

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

TEST_CASE("run directory: tells the hash of the saved model, if the run came to its end") {
  const TemporaryDirectory directory;
  CHECK(saved_model_sha256(directory.path()).empty());
  RunSummary summary = some_summary();
  summary.model_sha256 = "abc123";
  tests::write_text(directory / kSummaryFile, to_json(summary).dump());
  CHECK(saved_model_sha256(directory.path()) == "abc123");
  for (const char* damaged : {"", "{", "[]", "{}", R"({"model_sha256": 3})"}) {
    INFO(damaged);
    tests::write_text(directory / kSummaryFile, damaged);
    CHECK(failure([&] { saved_model_sha256(directory.path()); }) == ErrorKind::kData);
  }
}

TEST_CASE("run directory: a run that never began leaves nothing behind") {
  const TemporaryDirectory parent;
  {
    RunDirectory directory(parent / "run", some_job());
    RunSummary failed = some_summary();
    failed.status = RunStatus::kFailed;
    directory.on_finish(failed);
  }
  CHECK_FALSE(fs::exists(parent / "run"));
}

TEST_CASE("run directory: is refused if it holds a run, cannot be made or cannot be written") {
  const TemporaryDirectory parent;
  fs::create_directory(parent / "used");
  tests::write_text(parent / "used/model.safetensors", "precious");
  CHECK(failure([&] { RunDirectory(parent / "used", some_job()); }) == ErrorKind::kUsage);
  CHECK(tests::read_text(parent / "used/model.safetensors") == "precious");

  fs::create_directory(parent / "other");
  tests::write_text(parent / "other/notes.txt", "mine");
  CHECK_FALSE(failure([&] { RunDirectory(parent / "other", some_job()); }));
  CHECK(files_in(parent / "other") == std::vector<std::string>{"notes.txt"});

  tests::write_text(parent / "file", "");
  CHECK(failure([&] { RunDirectory(parent / "file", some_job()); }) == ErrorKind::kUsage);
  CHECK(failure([&] { RunDirectory(parent / "file/below", some_job()); }) == ErrorKind::kUsage);
  CHECK(failure([&] { RunDirectory("/proc/arbalest", some_job()); }) == ErrorKind::kUsage);
  CHECK(failure([&] { RunDirectory("/proc", some_job()); }) == ErrorKind::kUsage);
}

TEST_CASE("run directory: runs of a job that begin in the same second have directories of their own") {
  const TemporaryDirectory parent;
  const fs::path before = fs::current_path();
  fs::current_path(parent.path());
  {
    const RunDirectory first("", some_job());
    const RunDirectory second("", some_job());
    const RunDirectory third("", some_job());
    CHECK(first.path() != second.path());
    CHECK(second.path() != third.path());
    CHECK_THAT(first.path().string(), ContainsSubstring("runs/trial-20"));
    CHECK(fs::is_directory(third.path()));
  }
  fs::current_path(before);
}

}  // namespace arbalest::jobs
