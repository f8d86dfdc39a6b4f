// What happens to a run's files while it trains: a directory that disappears, a disk that fills up, a checkpoint that
// cannot be saved.
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;

// A run that goes on until it is stopped.
std::vector<std::string> endless(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {
      "train", Program::config("logistic-digits"), "--set",    "training.max_epochs=100000",
      "--set", "training.target_accuracy=default", "--output", "run"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("run faults: a run whose directory is deleted ends at the next line of its log, with one message") {
  const Program program;
  Subprocess run = program.start(endless());
  REQUIRE(run.wait_for_message("\nepoch "));
  fs::rename(program / "run", program / "moved");  // a deletion that the run cannot disturb
  const Completed ended = run.wait();
  CHECK(ended.exit_code == 1);
  CHECK(ended.err.ends_with(
      "arbalest: error: the directory 'run' was deleted or renamed while its run was training, so nothing can be saved "
      "there\n"));
  CHECK(count_of(ended.err, "deleted or renamed") == 1);
  CHECK_FALSE(fs::exists(program / "run"));
}

TEST_CASE("run faults: a run whose directory is deleted ends at the next save") {
  const Program program;
  Subprocess run = program.start(endless({"--quiet", "--set", "training.batch_size=20000", "--set",
                                          "learners.per_device.fixed=1", "--set", "checkpoint.every_batches=1"}));
  while (!fs::exists(program / "run/checkpoints")) REQUIRE(run.is_running());
  fs::rename(program / "run", program / "moved");
  const Completed ended = run.wait();
  CHECK(ended.exit_code == 1);
  CHECK(count_of(ended.err, "deleted or renamed") == 1);
  CHECK_FALSE(fs::exists(program / "run"));
}

TEST_CASE("run faults: a polite stop whose state cannot be saved exits 6 and says so") {
  const Program program;
  Subprocess run = program.start(endless({"--set", "checkpoint.every_epochs=100000"}));
  REQUIRE(run.wait_for_message("\nepoch "));
  write_text(program / "run/checkpoints", "a file is in the way");
  run.send(SIGTERM);
  const Completed stopped = run.wait();
  CHECK(stopped.exit_code == 6);
  CHECK_THAT(stopped.err, ContainsSubstring("arbalest: stopped by SIGTERM after ") &&
                              ContainsSubstring("error: the run has stopped, but its state was not saved: cannot write "
                                                "'run/checkpoints"));
  CHECK(summary_of(program / "run")["status"] == "stopped");
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);  // the model was saved
}

TEST_CASE("run faults: SIGUSR1 is answered with a warning if the job saves no checkpoints") {
  const Program program;
  Subprocess run = program.start(endless({"--set", "checkpoint.keep_last=0"}));
  REQUIRE(run.wait_for_message("\nepoch "));
  run.send(SIGUSR1);
  REQUIRE(run.wait_for_message("warning: SIGUSR1 asks for a checkpoint, but this job saves none"));
  run.send(SIGTERM);
  const Completed stopped = run.wait();
  CHECK(stopped.exit_code == 128 + SIGTERM);
  CHECK(count_of(stopped.err, "SIGUSR1") == 1);
  CHECK_THAT(read_text(program / "run/metrics.jsonl"), ContainsSubstring("\"event\":\"warning\""));
}

TEST_CASE("run faults: a start without room for job.txtpb, or without its place, is an error and leaves nothing") {
  const Program program;
  const std::string train =
      "exec " ARBALEST_PROGRAM " train " + Program::config("logistic-digits") + " -q --output run";
  const auto run = [&](const std::string& before) {
    return Subprocess({"/bin/bash", "-c", before + train}, program.environment(), program.directory()).wait();
  };
  const Completed full = run("ulimit -f 1; ");
  INFO(full.err);
  CHECK(full.exit_code == 6);
  CHECK_THAT(full.err, ContainsSubstring("cannot write 'run/job.txtpb': File too large"));
  CHECK_FALSE(fs::exists(program / "run"));
  const Completed folder = run("mkdir -p run/replay.txtpb; ");
  CHECK(folder.exit_code == 2);
  CHECK_THAT(folder.err, ContainsSubstring("replay.txtpb': Is a directory; choose another directory with --output"));
  CHECK_FALSE(fs::exists(program / "run/job.txtpb"));
  CHECK_FALSE(fs::exists(program / "run/metrics.jsonl"));
}

TEST_CASE("run faults: a log that has no room left costs the run its log only, and exit code 6") {
  const Program program;
  // Files of at most 72 KiB: a learner with its momentum has 62, the log of 250 epochs more than 100.
  const std::string script = "ulimit -f 72; exec " ARBALEST_PROGRAM " train " + Program::config("logistic-digits") +
                             " --set training.max_epochs=250 --set training.target_accuracy=default"
                             " --set training.batch_size=1000 --set learners.per_device.fixed=1"
                             " --set checkpoint.every_epochs=50 --output run";
  const Completed ended = Subprocess({"/bin/bash", "-c", script}, program.environment(), program.directory()).wait();
  INFO(ended.err);
  CHECK(ended.exit_code == 6);
  CHECK(count_of(ended.err, "warning: cannot write 'run/metrics.jsonl': File too large; the run goes on") == 1);
  CHECK_THAT(ended.err, ContainsSubstring(
                            "arbalest: error: cannot write 'run/metrics.jsonl': File too large; it lacks its last "));
  CHECK(summary_of(program / "run")["status"] == "completed");
  CHECK(summary_of(program / "run")["epochs"] == 250);
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
  CHECK(program.run({"evaluate", "run", "--checkpoint", "last"}).exit_code == 0);
  std::istringstream log(read_text(program / "run/metrics.jsonl"));
  int lines = 0;
  for (std::string line; std::getline(log, line); ++lines) {
    CHECK(nlohmann::json::accept(line));
    CHECK_FALSE(log.eof());  // the last line has its end, too
  }
  CHECK(lines > 50);
}

}  // namespace arbalest::tests
