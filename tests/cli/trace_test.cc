// arbalest train --trace.
#include <csignal>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/cli/small_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

std::vector<std::string> small_and(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = kSmall;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("trace: each epoch shows how busy the devices were, and the file exists at the end") {
  const Program program;
  const Completed done = program.run(small_and({"--trace", "trace.json"}));
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.err,
             ContainsSubstring("\n  device busy ") && ContainsSubstring(" %, averaging wait 0.0 %, input wait "));
  CHECK(nlohmann::json::parse(read_text(program / "trace.json"))["traceEvents"].size() > 100);

  std::istringstream rows(read_text(program / "run/metrics.jsonl"));
  int found = 0;
  for (std::string line; std::getline(rows, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["event"] != "trace") continue;
    ++found;
    CHECK(row["epoch"] == 1);
    CHECK(row["device_busy"] > 0.0);
    CHECK(row["averaging_wait"] == 0.0);
    CHECK(row["input_wait"] >= 0.0);
  }
  CHECK(found == 1);

  // Refused before anything runs.
  const Completed again = program.run(small_and({"--trace", "trace.json", "--set", "name=other"}));
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("--trace trace.json: it is there already"));
  const Completed dry = program.run({"train", Program::config("logistic-digits"), "--dry-run", "--trace", "x"});
  CHECK(dry.exit_code == 2);
  CHECK_THAT(dry.err, ContainsSubstring("--trace and --dry-run cannot be combined"));
}

TEST_CASE("trace: a stopped run also writes its trace") {
  const Program program;
  Subprocess running = program.start({"train", Program::config("logistic-digits"), "--set",
                                      "training.max_epochs=100000", "--output", "run", "--trace", "trace.json"});
  REQUIRE(running.wait_for_message("device busy"));
  running.send(SIGTERM);
  const Completed done = running.wait();
  INFO(done.err);
  CHECK(done.exit_code == 128 + SIGTERM);
  CHECK(summary_of(program / "run")["status"] == "stopped");
  CHECK(nlohmann::json::parse(read_text(program / "trace.json"))["traceEvents"].size() > 100);
}

}  // namespace arbalest::tests
