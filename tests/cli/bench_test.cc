// arbalest bench.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Arguments for a linear model on one core, with one epoch unless `more` says otherwise.
std::vector<std::string> bench(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "bench", Program::config("logistic-digits"), "--set",    "training.max_epochs=1",
      "--set", "learners.per_device.fixed=1",      "--output", "out"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json result_in(const Program& program) { return json::parse(read_text(program / "out/bench.json")); }

}  // namespace

TEST_CASE("bench: trains every seed of every variation in a separate process, and keeps and prints all results") {
  const Program program;
  const Completed done =
      program.run(bench({"--target", "0.5", "--seeds", "2,1", "--vary", "training.batch_size=32,64", "--json"}));
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const json result = json::parse(done.out);
  CHECK(result_in(program) == result);
  CHECK(result["seeds"] == json({2, 1}));
  REQUIRE(result["cases"].size() == 2);
  for (const json& of : result["cases"]) {
    CHECK(of["reached"] == 2);
    CHECK(of["epochs_to_target"]["median"] == 1.0);
    REQUIRE(of["runs"].size() == 2);
    for (const json& run : of["runs"]) {
      const fs::path directory = program / "out" / run["directory"].get<std::string>();
      const json summary = json::parse(read_text(directory / "summary.json"));
      CHECK(summary["seed"] == run["seed"]);
      CHECK(summary["status"] == "target_reached");
      CHECK(summary["time_to_accuracy_seconds"] == run["time_to_accuracy_seconds"]);
      CHECK(run["time_to_accuracy_seconds"].get<double>() ==
            Approx(run["phase_seconds"]["preparation"].get<double>() + run["seconds_per_epoch"].get<double>()));
      double phases = 0.0;
      for (const char* phase : {"preparation", "training", "evaluation", "other"}) {
        phases += run["phase_seconds"][phase].get<double>();
      }
      CHECK(run["phase_seconds"]["training_working"].is_null());
      CHECK(phases == Approx(run["train_seconds"].get<double>()));
      CHECK_THAT(read_text(directory.string() + ".log"), ContainsSubstring("test accuracy"));
      CHECK_THAT(read_text(directory.string() + ".mllog"), ContainsSubstring("\"key\":\"eval_accuracy\""));
      CHECK_THAT(read_text(directory / "job.txtpb"), ContainsSubstring("target_accuracy: 0.5"));
    }
  }
  CHECK(result["cases"][1]["batch_size"] == 64);
  CHECK_THAT(read_text(program / "out/bench.html"),
             ContainsSubstring("<td>batch_size=64</td>") && ContainsSubstring("</html>"));
  // The cases take turns.
  const std::size_t first = done.err.find("run 1 of 4: logistic-digits training.batch_size=32, seed 2");
  const std::size_t second = done.err.find("run 2 of 4: logistic-digits training.batch_size=64, seed 2");
  REQUIRE(first != std::string::npos);
  CHECK(second > first);
  CHECK(second != std::string::npos);

  const std::string before = read_text(program / "out/bench.json");
  const Completed again = program.run(bench({"--target", "0.5"}));
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, ContainsSubstring("'out' is there already"));
  CHECK(read_text(program / "out/bench.json") == before);
  const Completed slash = program.run({"bench", Program::config("logistic-digits"), "--set", "training.max_epochs=1",
                                       "--target", "0.5", "--seeds", "1", "--output", "new/other/"});
  CHECK(slash.exit_code == 0);
  CHECK(fs::exists(program / "new/other/bench.json"));
}

TEST_CASE("bench: a target that is not reached exits 9 with a message") {
  const Program program;
  const Completed done = program.run(bench({"--target", "1", "--seeds", "4", "--trace"}));
  INFO(done.err);
  CHECK(done.exit_code == 9);
  CHECK_THAT(done.out, ContainsSubstring("0 of 1") && ContainsSubstring("not reached"));
  CHECK_THAT(done.err, ContainsSubstring("100.00 % not yet held after 1 epoch: the one evaluation gave "));
  const json run = result_in(program)["cases"][0]["runs"][0];
  CHECK(run["outcome"] == "not_reached");
  CHECK(run["time_to_accuracy_seconds"].is_null());
  const json& phases = run["phase_seconds"];
  CHECK(phases["training_working"] > 0.0);
  CHECK(phases["training_averaging_wait"] == 0.0);
  CHECK(phases["training_working"].get<double>() <= 1.01 * phases["training"].get<double>());
  CHECK(json::parse(read_text(program / "out/1-logistic-digits/seed-4.trace.json")).contains("traceEvents"));
  CHECK_THAT(read_text(program / "out/bench.html"), ContainsSubstring("training: they wait for averaging"));
}

TEST_CASE("bench: a run that dies is counted and reported with its log, and other runs continue") {
  const Program program;
  write_text(program / "absent.txtpb",
             "name: 'absent' model { zoo { logistic_regression {} } } data { mnist {} } training { max_epochs: 1 }\n"
             "learning_rate { base: 0.01 }");
  std::vector<std::string> arguments = bench({"--target", "0.5", "--seeds", "1", "--data-root", "nowhere"});
  arguments.insert(arguments.begin() + 1, "absent.txtpb");
  const Completed done = program.run(arguments);
  INFO(done.err);
  CHECK(done.exit_code == 4);
  CHECK_THAT(done.out, ContainsSubstring("absent") && ContainsSubstring("0 of 1, 1 died"));
  CHECK_THAT(done.err, ContainsSubstring("absent, seed 1: died: it ended with exit code 4: ") &&
                           ContainsSubstring("its output is in 'out/1-absent/seed-1.log'"));
  const json result = result_in(program);
  CHECK(result["cases"][0]["died"] == 1);
  CHECK(result["cases"][1]["reached"] == 1);
  CHECK_THAT(read_text(program / "out/1-absent/seed-1.log"), ContainsSubstring("mnist"));
}

TEST_CASE("bench: errors in the arguments are reported before anything runs, and leave no files") {
  const Program program;
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--target", "0.5", "--vary", "training.bach_size=16,32"},
                                             {"--target", "1.5"},
                                             {"--target", "0.5", "--seeds", ""},
                                             {"--target", "0.5", "--seeds", "3..2"},
                                             {"--target", "0.5", "--no-target"},
                                             {"--vary", "synchronization=sma,s_gd"},
                                             {"--target", "0.5", "--seeds", "3..2", "--resume"}}) {
    const Completed done = program.run(bench(wrong));
    INFO(done.err);
    CHECK(done.exit_code == 2);
    CHECK(done.out.empty());
    CHECK(fs::is_empty(program.directory()));
  }
  CHECK(program.run({"bench", "no-such-job.txtpb", "--target", "0.5"}).exit_code == 3);
  const Completed nowhere = program.run({"bench", Program::config("logistic-digits"), "--resume"});
  CHECK(nowhere.exit_code == 2);
  CHECK_THAT(nowhere.err, ContainsSubstring("name it with --output"));
  CHECK(fs::is_empty(program.directory()));
}

TEST_CASE("bench: Ctrl-C stops the current run and keeps the results so far") {
  const Program program;
  Subprocess running =
      program.start(bench({"--target", "1", "--seeds", "1..3", "--set", "training.max_epochs=1000000"}));
  REQUIRE(running.wait_for_message("run 1 of 3"));
  // Waits until the run trains, so that it has something to save.
  while (!fs::exists(program / "out/1-logistic-digits/seed-1/job.txtpb")) {
    REQUIRE(running.is_running());
  }
  running.send(SIGINT);
  const Completed done = running.wait();
  INFO(done.err);
  CHECK(done.exit_code == 128 + SIGINT);
  CHECK_THAT(done.err,
             ContainsSubstring("seed 1: stopped") && ContainsSubstring("stopped; what has been measured is kept"));
  CHECK_THAT(done.out, ContainsSubstring("2 runs did not run: the bench was stopped"));
  const json result = result_in(program);
  CHECK(result["status"] == "stopped");
  CHECK(result["cases"][0]["stopped"] == 3);
  CHECK(result["cases"][0]["runs"][0]["outcome"] == "stopped");
  CHECK(result["cases"][0]["runs"][1]["outcome"] == "not_run");
  const json summary = json::parse(read_text(program / "out/1-logistic-digits/seed-1/summary.json"));
  CHECK(summary["status"] == "stopped");
  CHECK_THAT(read_text(program / "out/bench.html"), ContainsSubstring("was stopped before all of its runs"));
}

TEST_CASE("bench: results are saved after every run, and printed even if they cannot be saved at the end") {
  const Program program;
  // The second run continues until it is stopped.
  Subprocess running =
      program.start({"bench", Program::config("logistic-digits"), "--target", "1", "--seeds", "1", "--set",
                     "learners.per_device.fixed=1", "--vary", "training.max_epochs=1,1000000", "--output", "out"});
  while (!fs::exists(program / "out/2-logistic-digits/seed-1/job.txtpb")) REQUIRE(running.is_running());
  const json result = result_in(program);
  CHECK(result["status"] == "running");
  CHECK(result["cases"][0]["runs"][0]["outcome"] == "not_reached");
  CHECK(result["cases"][1]["runs"][0]["outcome"] == "not_run");
  CHECK(result["load_average"]["begin"].size() == 3);
  CHECK(result["load_average"]["end"].size() == 3);
  CHECK_THAT(read_text(program / "out/bench.html"),
             ContainsSubstring("1 of 2 runs have ended") && ContainsSubstring("Load averages"));
  CHECK_THAT(read_text(program / "out/1-logistic-digits/seed-1.mllog"), ContainsSubstring("run_stop"));

  fs::remove(program / "out/bench.json");
  fs::create_directories(program / "out/bench.json/in-the-way");
  running.send(SIGINT);
  const Completed done = running.wait();
  INFO(done.err);
  CHECK(done.exit_code == 1);
  CHECK_THAT(done.err,
             ContainsSubstring("what has been measured so far cannot be kept: cannot write 'out/bench.json'"));
  CHECK_THAT(done.out, ContainsSubstring("training.max_epochs=1 ") && ContainsSubstring("0 of 1"));
}

TEST_CASE("bench: a second signal, or SIGKILL, leaves no run behind") {
  const Program program;
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);  // so that this process becomes the parent of what would be left
                                                   // behind
  for (const std::vector<int>& signals : std::vector<std::vector<int>>{{SIGINT, SIGTERM}, {SIGKILL}}) {
    const std::string output = signals.front() == SIGKILL ? "killed" : "stopped";
    Subprocess running = program.start({"bench", Program::config("logistic-digits"), "--target", "1", "--seeds", "1",
                                        "--set", "training.max_epochs=1000000", "--output", output});
    while (!fs::exists(program / (output + "/1-logistic-digits/seed-1/job.txtpb"))) REQUIRE(running.is_running());
    for (const int signal : signals) running.send(signal);
    const int code = running.wait().exit_code;
    CHECK((code == -SIGKILL || code == 128 + SIGINT || code == 128 + SIGTERM));
    int status = 0;
    while (waitpid(-1, &status, 0) > 0) {  // if the run is still alive, it is now our child
      CHECK(WIFEXITED(status));
      const int ended = WEXITSTATUS(status);
      CHECK((ended == 128 + SIGINT || ended == 128 + SIGTERM));
    }
    CHECK(errno == ECHILD);
    if (signals.front() == SIGKILL) {  // the run itself got no second signal, so it has saved its model
      CHECK(json::parse(read_text(program / (output + "/1-logistic-digits/seed-1/summary.json")))["status"] ==
            "stopped");
    }
  }
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace arbalest::tests
