// Runs of the program that train: what they leave behind, and how they end.
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// One epoch of a linear model on one core: seconds.
const std::vector<std::string> kSmall = {
    "train", Program::config("logistic-digits"), "--set",    "training.max_epochs=1",
    "--set", "learners.per_device.fixed=1",      "--output", "run"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json summary_of(const fs::path& run) { return json::parse(read_text(run / "summary.json")); }

}  // namespace

TEST_CASE("train: leaves job, metrics, summary and model, and evaluate gives the same accuracy to the last digit") {
  const Program program;
  const Completed trained = program.run(kSmall);
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.out, ContainsSubstring("test accuracy") && ContainsSubstring("run/model.safetensors"));
  CHECK_THAT(trained.err, ContainsSubstring("epoch 1/1"));
  CHECK(trained.err.find('\x1b') == std::string::npos);

  const json summary = summary_of(program / "run");
  CHECK(summary["epochs"] == 1);
  CHECK(summary["model_sha256"].get<std::string>().size() == 64);

  const Completed evaluated = program.run({"evaluate", "run", "--json"});
  INFO(evaluated.err);
  REQUIRE(evaluated.exit_code == 0);
  CHECK(json::parse(evaluated.out)["test_accuracy"].get<double>() == summary["test_accuracy"].get<double>());

  const Completed hash = Subprocess({"/usr/bin/sha256sum", "run/model.safetensors"}, {}, program.directory()).wait();
  CHECK(hash.out.starts_with(summary["model_sha256"].get<std::string>()));

  // The same run is never overwritten.
  const std::string before = read_text(program / "run/summary.json");
  const Completed again = program.run(kSmall);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("holds a run already"));
  CHECK(read_text(program / "run/summary.json") == before);

  // A damaged or missing model is refused.
  const std::string model = read_text(program / "run/model.safetensors");
  write_text(program / "run/model.safetensors", model.substr(0, model.size() - 1));
  const Completed damaged = program.run({"evaluate", "run"});
  CHECK(damaged.exit_code == 5);
  CHECK_THAT(damaged.err, ContainsSubstring("model.safetensors"));
  fs::remove(program / "run/model.safetensors");
  CHECK(program.run({"evaluate", "run"}).exit_code == 5);
}

TEST_CASE("train: a dry run steps through each phase and leaves nothing") {
  const Program program;
  const Completed result = program.run({"train", Program::config("lenet-digits"), "--dry-run"});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_FALSE(result.out.empty());
  CHECK(fs::is_empty(program.directory()));
}

TEST_CASE("train: an output directory that cannot be written is refused before training") {
  const Program program;
  write_text(program / "file", "");
  for (const std::string output : {"file", "file/below", "/proc/arbalest", "/proc"}) {
    INFO(output);
    const Completed result = program.run({"train", Program::config("lenet-digits"), "--output", output});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("output directory '" + output + "'"));
  }
}

TEST_CASE("train: missing data exits 4, says where it was looked for, and leaves nothing") {
  Program program;
  const std::vector<std::string> arguments = {"train", Program::config("lenet-mnist"), "--output", "run"};
  Completed result = program.run(with(arguments, {"--data-root", "here"}));
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("here/"));
  program.set_environment("ARBALEST_DATA=there");
  result = program.run(arguments);
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, ContainsSubstring("there/"));
  CHECK(fs::is_empty(program.directory()));
}

TEST_CASE("train: a signal ends the round, and the model is saved") {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Program program;
    Subprocess run = program.start(
        {"train", Program::config("lenet-digits"), "--set", "training.max_epochs=100000", "--output", "run"});
    REQUIRE(run.wait_for_message("\nepoch "));
    run.send(signal);
    const Completed result = run.wait();
    INFO(result.err);
    CHECK(result.exit_code == 128 + signal);
    CHECK(fs::exists(program / "run/model.safetensors"));
    CHECK(summary_of(program / "run")["status"] == "stopped");
    CHECK(program.run({"evaluate", "run"}).exit_code == 0);
  }
}

TEST_CASE("train: a run that diverges exits 7 and keeps the last finite model") {
  const Program program;
  const Completed result = program.run({"train", Program::config("lenet-digits"), "--set", "learning_rate.base=1000",
                                        "--set", "learners.per_device.fixed=2", "--output", "run"});
  INFO(result.err);
  CHECK(result.exit_code == 7);
  CHECK(summary_of(program / "run")["status"] == "diverged");
  CHECK_THAT(result.err, ContainsSubstring("learner"));
  CHECK(program.run({"evaluate", "run"}).exit_code == 0);
}

TEST_CASE("train: a second signal ends a run that does not get to its next round") {
  const Program program;
  REQUIRE(mkfifo((program / "job.txtpb").c_str(), 0600) == 0);
  Subprocess run = program.start({"train", "job.txtpb"});  // waits for somebody to write the job
  while (!run.catches(SIGINT)) std::this_thread::yield();
  // Signals that come before the first is delivered count as one.
  while (run.is_running()) {
    run.send(SIGINT);
    std::this_thread::yield();
  }
  CHECK(run.wait().exit_code == 130);
}

TEST_CASE("train: without --output the run gets a directory below runs/") {
  const Program program;
  std::vector<std::string> arguments = kSmall;
  arguments.resize(arguments.size() - 2);
  const Completed result = program.run(with(arguments, {"--quiet"}));
  CHECK(result.exit_code == 0);
  CHECK(result.err.find("epoch 1/1") == std::string::npos);
  REQUIRE(std::distance(fs::directory_iterator(program / "runs"), {}) == 1);
  const std::string run = fs::directory_iterator(program / "runs")->path().filename();
  CHECK(run.starts_with("logistic-digits-20"));
  CHECK_THAT(result.out, ContainsSubstring("runs/" + run + "/model.safetensors"));
}

}  // namespace arbalest::tests
