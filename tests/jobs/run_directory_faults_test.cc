// A disk that fills up and a directory that disappears while a run writes its log.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "checkpoint/saved_run.h"
#include "engine/base/error.h"
#include "report/run_directory.h"
#include "report/run_lock.h"
#include "saved_model/atomic_file.h"
#include "tests/jobs/reported_run.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

using engine::ErrorKind;
using tests::TemporaryDirectory;
namespace fs = std::filesystem;

TEST_CASE("metrics: a line that cannot be written waits, and no part of it is in the file") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "metrics.jsonl";
  MetricsLog log(path, open(path.c_str(), O_RDWR | O_CREAT | O_APPEND, 0666));
  log.append("start", {{"job", "x"}});
  const std::string first = "{\"event\":\"start\",\"job\":\"x\"}\n";
  {
    const FileSizeLimit limit(first.size() + 10);  // room for a part of the next line
    for (const int epoch : {1, 2}) {
      CHECK(failure([&] { log.append("epoch", {{"epoch", epoch}}); }) == ErrorKind::kOutOfMemory);
    }
    CHECK(failure([&] { log.sync(); }) == ErrorKind::kOutOfMemory);
  }
  CHECK(tests::read_text(path) == first);
  CHECK(log.waiting_lines() == 2);
  CHECK_FALSE(log.is_whole());
  const std::string whole = first + "{\"event\":\"epoch\",\"epoch\":1}\n{\"event\":\"epoch\",\"epoch\":2}\n";
  CHECK(log.bytes() == whole.size());
  log.sync();
  CHECK(tests::read_text(path) == whole);
  CHECK(log.is_whole());
  CHECK(log.cut(whole.size() + 100).bytes == whole.size());  // a shorter file that ends with a line
  CHECK(tests::read_text(path) == whole);
  log.cut(whole.size() - 5);  // within a line
  CHECK(tests::read_text(path) == first + "{\"event\":\"epoch\",\"epoch\":1}\n");
  CHECK(log.cut(first.size()).bytes == first.size());
  CHECK(tests::read_text(path) == first);
  log.cut(first.size() - 1);
  CHECK(tests::read_text(path).empty());
}

namespace {

// A run that has begun, and what it told.
struct BegunRun {
  explicit BegunRun(const fs::path& path) : directory(path, "trial") {
    directory.warn_with([this](const std::string& text) { told.push_back(text); });
    directory.on_start(some_start());
    directory.on_epoch(some_row());
  }

  RunDirectory directory;
  std::vector<std::string> told;
};

std::size_t lines_of(const fs::path& file) {
  const std::string text = tests::read_text(file);
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("run directory: a full disk is told once, the run goes on, and the log is completed later") {
  const TemporaryDirectory directory;
  BegunRun run(directory / "run");
  const fs::path log = directory / "run/metrics.jsonl";
  {
    const FileSizeLimit limit(fs::file_size(log) + 10);
    for (int time = 0; time < 3; ++time) run.directory.on_epoch(some_row());
    run.directory.on_warning("a checkpoint was not saved");
    CHECK(run.directory.log_bytes() > fs::file_size(log));
  }
  REQUIRE(run.told.size() == 1);
  CHECK_THAT(run.told[0], ContainsSubstring(log.string() + "': File too large; the run goes on"));
  CHECK(lines_of(log) == 2);
  run.directory.on_epoch(some_row());
  REQUIRE(run.told.size() == 2);
  CHECK_THAT(run.told[1], ContainsSubstring("can be written again, and nothing is missing"));
  CHECK(lines_of(log) == 7);
  run.directory.on_finish(some_summary());
  CHECK(lines_of(log) == 8);
}

TEST_CASE("run directory: a log that lacks lines at the end is an error, but the summary is there") {
  const TemporaryDirectory directory;
  BegunRun run(directory / "run");
  const fs::path log = directory / "run/metrics.jsonl";
  const FileSizeLimit limit(fs::file_size(log) + 10);
  run.directory.on_epoch(some_row());
  try {
    run.directory.on_finish(some_summary());
    FAIL_CHECK("no error");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == ErrorKind::kOutOfMemory);
    CHECK_THAT(error.what(), ContainsSubstring("File too large; it lacks its last 2 lines"));
  }
  CHECK(run.told.size() == 1);
  CHECK(lines_of(log) == 2);
  CHECK(read_summary(directory / "run")->status == "completed");
}

TEST_CASE("run directory: a run whose directory is gone ends at the next line") {
  const TemporaryDirectory directory;
  BegunRun run(directory / "run");
  SECTION("deleted") { fs::remove_all(directory / "run"); }
  SECTION("renamed") { fs::rename(directory / "run", directory / "other"); }
  std::optional<RunDirectory> other;
  SECTION("deleted, and another run has taken its name") {
    fs::remove_all(directory / "run");
    other.emplace(directory / "run", "trial");
  }
  SECTION("emptied, and another run has taken its place") {
    for (const char* name : {kJobFile, kMetricsFile, kTensorBoardFolder}) fs::remove_all(directory / "run" / name);
    other.emplace(directory / "run", "trial");
  }
  const auto check = [&](const std::function<void()>& write) {
    try {
      write();
      FAIL_CHECK("no error");
    } catch (const RunGone& gone) {
      CHECK_THAT(gone.what(), ContainsSubstring("/run' was deleted or renamed while its run was training"));
    }
  };
  check([&] { run.directory.on_epoch(some_row()); });
  check([&] { run.directory.log_bytes(); });
  check([&] { run.directory.on_finish(some_summary()); });
  CHECK(run.told.empty());
}

TEST_CASE("run directory: a resumed run tells that its log is damaged, and drops what is no line of it") {
  const TemporaryDirectory directory;
  std::string whole;
  {
    BegunRun run(directory / "run");
    run.directory.on_epoch(some_row());
    whole = tests::read_text(directory / "run/metrics.jsonl");
  }
  const fs::path log = directory / "run/metrics.jsonl";
  SavedRun saved;
  saved.run.metrics_bytes = whole.size();
  RunStart resumed = some_start();
  resumed.resumed.emplace();
  const auto resume = [&](const std::string& text) {
    tests::write_text(log, text);
    RunDirectory run(directory / "run", "trial", ExistingRun::kContinue);
    std::vector<std::string> told;
    run.warn_with([&](const std::string& warning) { told.push_back(warning); });
    run.continue_from(&saved);
    run.on_start(resumed);
    return told;
  };
  CHECK(resume(whole).empty());
  CHECK(lines_of(log) == 4);
  const fs::path aside = directory / "run/metrics.jsonl.damaged";
  CHECK_FALSE(fs::exists(aside));
  SECTION("a log without lines") {
    const std::vector<std::string> told = resume("");
    REQUIRE(told.size() == 1);
    CHECK_THAT(told[0], ContainsSubstring(fmt::format("it holds 0 of the {} bytes", whole.size())));
    CHECK(tests::read_text(log).starts_with("{\"event\":\"start\""));
    CHECK(lines_of(log) == 2);
  }
  SECTION("a log that is gone") {
    fs::remove(log);
    RunDirectory run(directory / "run", "trial", ExistingRun::kContinue);
    std::vector<std::string> told;
    run.warn_with([&](const std::string& warning) { told.push_back(warning); });
    run.continue_from(&saved);
    run.on_start(resumed);
    REQUIRE(told.size() == 1);
    CHECK_THAT(told[0], ContainsSubstring(fmt::format("was deleted: it holds 0 of the {} bytes", whole.size())));
  }
  SECTION("one byte of each line, and each line end") {
    for (std::size_t at = 1; at < whole.size(); ++at) {
      if (at % 7 != 0 && whole[at] != '\n') continue;
      fs::remove(aside);
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ '\x80');  // no UTF-8, and no line end
      CAPTURE(at);
      const std::vector<std::string> told = resume(damaged);
      const bool is_last = at + 1 == whole.size();
      REQUIRE(told.size() == (is_last ? 2 : 1));
      CHECK_THAT(told[0], ContainsSubstring("is now in '") && ContainsSubstring("all other lines are kept"));
      CHECK(fs::file_size(aside) > 0);
      const std::string after = tests::read_text(log);
      if (is_last) continue;  // the line is gone, because nothing ends it
      CHECK(lines_of(aside) == 1);
      CHECK(whole.size() == after.find("{\"event\":\"resume\""));  // all lines stay where they were
      CHECK(after.find("{\"event\":\"damaged\"}") != std::string::npos);
    }
  }
}

TEST_CASE("run directory: partial files of killed processes are removed, and nothing else") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  fs::create_directories(run / "model.partial-7");  // no file
  for (const char* name : {"best.safetensors.partial-4711", "notes.partial-one", ".partial-5"}) {
    tests::write_text(run / name, "x");
  }
  const RunDirectory opened(run, "trial");
  CHECK_FALSE(fs::exists(run / "best.safetensors.partial-4711"));
  for (const char* name : {"model.partial-7", "notes.partial-one", ".partial-5"}) CHECK(fs::exists(run / name));
}

TEST_CASE("run directory: a lock that is held for an instant only does not stop a run") {
  const TemporaryDirectory directory;
  const fs::path log = directory / "metrics.jsonl";
  const int looked_at = open(log.c_str(), O_RDWR | O_CREAT, 0666);
  REQUIRE(flock(looked_at, LOCK_SH | LOCK_NB) == 0);  // as is_locked() does
  std::thread looking([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    close(looked_at);
  });
  const RunDirectory opened(directory.path(), "trial", ExistingRun::kContinue);
  looking.join();
  CHECK(is_locked(log));
  CHECK(failure([&] { RunDirectory(directory.path(), "trial", ExistingRun::kContinue); }) == ErrorKind::kUsage);
}

TEST_CASE("run directory: a log that is deleted is written again, with its lines and its lock") {
  const TemporaryDirectory directory;
  BegunRun run(directory / "run");
  const fs::path log = directory / "run/metrics.jsonl";
  const std::string before = tests::read_text(log);
  fs::remove(log);
  run.directory.on_epoch(some_row());
  REQUIRE(run.told.size() == 1);
  CHECK_THAT(run.told[0], ContainsSubstring("metrics.jsonl' was deleted while its run was training; it was written"));
  CHECK(tests::read_text(log).starts_with(before));
  CHECK(lines_of(log) == 3);
  CHECK(is_running(directory / "run"));
  {
    fs::remove(log);
    const FileSizeLimit limit(10);  // no room for the lines that were there
    run.directory.on_epoch(some_row());
    CHECK_FALSE(fs::exists(log));
  }
  REQUIRE(run.told.size() == 2);
  CHECK_THAT(run.told[1], ContainsSubstring("File too large; the run goes on"));
  run.directory.on_epoch(some_row());
  CHECK(lines_of(log) == 5);
  run.directory.on_finish(some_summary());
  CHECK(lines_of(log) == 6);
}

TEST_CASE("run directory: a log that another file replaces waits for its place, and is an error at the end") {
  const TemporaryDirectory directory;
  BegunRun run(directory / "run");
  const fs::path log = directory / "run/metrics.jsonl";
  const auto replace = [&] {
    fs::remove(log);
    tests::write_text(log, "not ours");
  };
  replace();
  run.directory.on_epoch(some_row());
  run.directory.on_epoch(some_row());
  REQUIRE(run.told.size() == 1);
  CHECK_THAT(run.told[0], ContainsSubstring("metrics.jsonl' was replaced by another file while its run was training; "
                                            "move that file away; the run goes on"));
  CHECK(tests::read_text(log) == "not ours");
  fs::remove(log);
  run.directory.on_epoch(some_row());
  CHECK(lines_of(log) == 5);
  replace();
  CHECK(failure([&] { run.directory.on_finish(some_summary()); }) == ErrorKind::kOutOfMemory);
  CHECK(fs::exists(directory / "run/summary.json"));
}

TEST_CASE("output directory: an empty directory that took the name of a removed one stays") {
  const TemporaryDirectory directory;
  {
    const OutputDirectory made(directory / "outer/run", "trial");
    CHECK(made.is_new());
    fs::rename(directory / "outer/run", directory / "moved");  // it exists, so the new one has another inode
    fs::create_directory(directory / "outer/run");
  }
  CHECK(fs::exists(directory / "outer/run"));
  { const OutputDirectory made(directory / "other/run", "trial"); }
  CHECK_FALSE(fs::exists(directory / "other"));
}

TEST_CASE("run directory: a folder of runs is no run, and its newest run is named") {
  const TemporaryDirectory directory;
  { BegunRun first(directory / "runs/b"); }
  { BegunRun second(directory / "runs/a"); }
  fs::last_write_time(directory / "runs/b/metrics.jsonl", fs::file_time_type::clock::now() - std::chrono::hours(1));
  fs::create_directories(directory / "runs/not-a-run");
  for (const ExistingRun existing : {ExistingRun::kContinue, ExistingRun::kRefuse}) {
    try {
      const RunDirectory refused(directory / "runs", "trial", existing);
      FAIL_CHECK("no error");
    } catch (const engine::Error& error) {
      CHECK(error.kind() == ErrorKind::kUsage);
      CHECK_THAT(error.what(), ContainsSubstring("is a folder of runs") &&
                                   ContainsSubstring("its newest run is '" + (directory / "runs/a").string() + "'"));
    }
    CHECK_FALSE(fs::exists(directory / "runs/metrics.jsonl"));
  }
  CHECK_NOTHROW(RunDirectory(directory / "runs/a", "trial", ExistingRun::kContinue));
  CHECK_NOTHROW(RunDirectory(directory / "runs/c", "trial", ExistingRun::kContinue));
}

TEST_CASE("run directory: a start that cannot be written fails before anything begins, and leaves nothing") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "run";
  ErrorKind expected = ErrorKind::kUsage;
  std::optional<FileSizeLimit> limit;
  RunDirectory run(path, "trial");
  SECTION("job.txtpb is a folder") { fs::create_directory(path / "job.txtpb"); }
  SECTION("replay.txtpb is a folder") { fs::create_directory(path / "replay.txtpb"); }
  SECTION("a full disk") {
    limit.emplace(10);
    expected = ErrorKind::kOutOfMemory;
  }
  CHECK(failure([&] { run.on_start(some_start()); }) == expected);
  // The failure path of a run does this.
  run.on_warning("told before the start");
  run.on_finish(some_summary());
  CHECK_FALSE(fs::exists(path / "summary.json"));
}

TEST_CASE("run directory: an empty log that a killed process has left is taken, and no other") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "run";
  fs::create_directory(path);
  tests::write_text(path / "metrics.jsonl", "");
  {
    RunDirectory run(path, "trial");
    CHECK(failure([&] { RunDirectory(path, "trial"); }) == ErrorKind::kUsage);  // its process lives
    run.on_start(some_start());
  }
  CHECK(failure([&] { RunDirectory(path, "trial"); }) == ErrorKind::kUsage);
}

TEST_CASE("run directory: no file is written through a symbolic link") {
  const TemporaryDirectory directory;
  const fs::path path = directory / "run";
  const fs::path other = directory / "other";
  fs::create_directory(path);
  tests::write_text(other, "not ours");
  SECTION("the log") {
    fs::create_symlink(other, path / "metrics.jsonl");
    for (const ExistingRun existing : {ExistingRun::kContinue, ExistingRun::kRefuse}) {
      CHECK(failure([&] { RunDirectory(path, "trial", existing); }) == ErrorKind::kUsage);
    }
  }
  SECTION("the job") {
    RunDirectory run(path, "trial");
    fs::create_symlink(other, path / "job.txtpb");
    run.on_start(some_start());
    CHECK_FALSE(fs::is_symlink(path / "job.txtpb"));
  }
  SECTION("a partial file") {
    const fs::path partial = path / fmt::format("job.txtpb.partial-{}", getpid());
    fs::create_symlink(other, partial);
    write_file(path / "job.txtpb", "text");
    CHECK(tests::read_text(path / "job.txtpb") == "text");
    CHECK(fs::is_symlink(partial));  // what is no file of ours stays
  }
  CHECK(tests::read_text(other) == "not ours");
}

}  // namespace arbalest::jobs
