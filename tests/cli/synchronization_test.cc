// Synchronization schemes, tested through the program.
#include <csignal>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using nlohmann::json;

std::vector<std::string> training(const std::string& synchronization, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"train",    Program::config("logistic-digits"),
                                     "--set",    "training.max_epochs=2",
                                     "--set",    "training.batch_size=32",
                                     "--set",    "devices=cpu",
                                     "--set",    "learners.per_device.fixed=2",
                                     "--set",    "synchronization={" + synchronization + "}",
                                     "--output", "run"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Returns the rows of a run's metrics with this event.
std::vector<json> rows_of(const Program& program, const std::string& event) {
  std::vector<json> rows;
  std::istringstream lines(read_text(program / "run/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    json row = json::parse(line);
    if (row["event"] == event) rows.push_back(std::move(row));
  }
  return rows;
}

// Checks that `arbalest evaluate` gives no warning, which it would if its accuracy differed from the run's.
void check_evaluates_as_reported(const Program& program) {
  const Completed evaluated = program.run({"evaluate", "run"});
  CHECK(evaluated.exit_code == 0);
  CHECK(evaluated.err.empty());
}

}  // namespace

TEST_CASE("schemes: a switch is reported during the run and stored in its metrics") {
  const Program program;
  const Completed trained = program.run(training("s_sgd {} switch { at_epoch: 1 local_sgd {} }"));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.out + trained.err, ContainsSubstring("epoch 1.00: local_sgd instead of s_sgd, 2 learners\n"));
  const std::vector<json> switches = rows_of(program, "switch");
  REQUIRE(switches.size() == 1);
  CHECK(switches[0]["batch"] == 626);  // the first step of two at or after the epoch's 625 mini-batches
  CHECK(switches[0]["from"] == "s_sgd");
  CHECK(switches[0]["to"] == "local_sgd");
  CHECK(switches[0]["learners_per_device"] == json::array({2}));
  const std::vector<json> epochs = rows_of(program, "epoch");
  REQUIRE(epochs.size() == 2);
  CHECK(epochs[0]["replica_distance"] == 0.0);  // the replicas of s_sgd are equal
  CHECK(epochs[1]["replica_distance"] > 0.0);
  const json summary = summary_of(program / "run");
  CHECK(summary["status"] == "completed");
  CHECK(summary["epochs"] == 2);
  CHECK(summary["learners_per_device"] == 2);
  check_evaluates_as_reported(program);
}

TEST_CASE("schemes: a run ends with the reduced number of learners of its last switch") {
  const Program program;
  const Completed trained = program.run(training("sma {} switch { at_epoch: 1 learners: 1 lookahead {} }"));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  CHECK_THAT(trained.out + trained.err, ContainsSubstring("epoch 1.00: lookahead instead of sma, 1 learner\n"));
  REQUIRE(rows_of(program, "switch").size() == 1);
  CHECK(rows_of(program, "switch")[0]["learners_per_device"] == json::array({1}));
  CHECK(rows_of(program, "epoch").at(0)["learners_per_device"] == 2);
  CHECK(rows_of(program, "epoch").at(1)["learners_per_device"] == 1);
  CHECK(summary_of(program / "run")["learners_per_device"] == 1);
  check_evaluates_as_reported(program);
}

TEST_CASE("schemes: a model saved in the middle of a round evaluates to the reported accuracy") {
  for (const std::string scheme : {"s_sgd {}", "local_sgd { period: 7 }", "swap {}"}) {
    CAPTURE(scheme);
    const Program program;
    REQUIRE(program.run(training(scheme)).exit_code == 0);
    check_evaluates_as_reported(program);
  }
}

TEST_CASE("schemes: Ctrl-C in a long round ends the run after a step, and the learners' mean is saved") {
  const Program program;
  // A round is an epoch of 20,000 mini-batches of one image.
  std::vector<std::string> arguments =
      training("diloco { period: 10000 momentum: 0.65 }", {"--set", "learning_rate.with_learners=KEEP"});
  arguments[1] = Program::config("lenet-digits");
  arguments[5] = "training.batch_size=1";
  Subprocess run = program.start(arguments);
  REQUIRE(run.wait_for_message("\nepoch "));
  run.send(SIGINT);
  const Completed result = run.wait();
  INFO(result.err);
  CHECK(result.exit_code == 128 + SIGINT);
  CHECK_THAT(result.err, ContainsSubstring("arbalest: stopped by SIGINT after "));
  const json summary = summary_of(program / "run");
  CHECK(summary["status"] == "stopped");
  CHECK(summary["examples"] > 0);
  CHECK(summary["examples"] < 20000);  // the run did not wait for the end of the round
  check_evaluates_as_reported(program);
}

TEST_CASE("schemes: a diverged run with a server names the settings of its steps, and what helps under the scheme") {
  const Program program;
  const Completed trained =
      program.run({"train", Program::config("lenet-digits"), "--set", "training.max_epochs=1", "--set", "devices=cpu",
                   "--set", "learners.per_device.fixed=2", "--set", "synchronization=async_sgd", "--set",
                   "learning_rate.with_learners=KEEP", "--set", "learning_rate.base=1000", "--output", "run"});
  INFO(trained.err);
  CHECK(trained.exit_code == 7);
  CHECK_THAT(trained.err,
             ContainsSubstring("this run has --set learners.per_device.fixed=2 and --set synchronization=async_sgd and "
                               "--set learning_rate.with_learners=KEEP and --set learning_rate.base=1000, which change "
                               "the length of the steps; lower learning_rate.base") &&
                 ContainsSubstring(", or bound async_sgd.staleness\n"));
}

TEST_CASE("schemes: a job with an invalid synchronization exits 3 and shows the position") {
  const Program program;
  write_text(program / "job.txtpb",
             "model { zoo { logistic_regression {} } } data { digits {} } learning_rate { base: 0.01 }\n"
             "synchronization { s_sgd { alpha: 0.1 } }\n");
  const Completed unknown = program.run({"train", "job.txtpb"});
  CHECK(unknown.exit_code == 3);
  CHECK_THAT(unknown.err, ContainsSubstring("job.txtpb:2:27: error: no field 'alpha' in s_sgd, whose fields are"));
  write_text(program / "job.txtpb",
             "model { zoo { logistic_regression {} } } data { digits {} } learning_rate { base: 0.01 }\n"
             "synchronization { diloco { period: 10 rate: 1.5 } }\n");
  const Completed unstable = program.run({"train", "job.txtpb"});
  CHECK(unstable.exit_code == 3);
  CHECK_THAT(unstable.err, ContainsSubstring("job.txtpb:2:39: error: diloco with rate 1.5 and momentum 0.9"));
}

}  // namespace arbalest::tests
