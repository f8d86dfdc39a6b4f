// arbalest bench: comparing accuracies, and resuming an earlier call.
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;  // keeps the order of fields when a file is rewritten

// Arguments for a linear model without a target.
std::vector<std::string> bench(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"bench", Program::config("logistic-digits"), "--output", "out"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

json result_in(const Program& program) { return json::parse(read_text(program / "out/bench.json")); }

void write_result(const Program& program, const json& result) { write_text(program / "out/bench.json", result.dump()); }

// Arguments for one seed and two cases of one epoch each.
const std::vector<std::string> kTwoRuns = {
    "--seeds", "3", "--set", "training.max_epochs=1", "--vary", "learners.per_device.fixed=1,2"};

// Changes the result file to that of a bench that was stopped in its second run.
void make_unfinished(const Program& program) {
  json result = result_in(program);
  json& run = result["cases"][1]["runs"][0];
  run = {{"seed", run["seed"]},
         {"outcome", "stopped"},
         {"message", ""},
         {"exit_code", 130},
         {"directory", run["directory"]},
         {"log", run["log"]},
         {"start_milliseconds", run["start_milliseconds"]}};
  write_result(program, result);
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

TEST_CASE("bench: without a target, schemes are compared by their accuracies in all epochs") {
  const Program program;
  const Completed done =
      program.run(bench({"--seeds", "1,2", "--set", "training.max_epochs=2", "--vary",
                         "synchronization=sma,sma{period: 4}", "--vary", "learners.per_device.fixed=1,2", "--json"}));
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const json result = json::parse(done.out);
  CHECK(result["target_accuracy"].is_null());
  REQUIRE(result["cases"].size() == 4);
  CHECK(result["cases"][3]["name"] == "sma{period: 4}, 2 learners");
  for (const json& of : result["cases"]) {
    REQUIRE(of["runs"].size() == 2);
    std::vector<double> ends;
    for (const json& run : of["runs"]) {
      CHECK(run["outcome"] == "completed");
      REQUIRE(run["epoch_rows"].size() == 2);
      const fs::path directory = program / "out" / run["directory"].get<std::string>();
      const json summary = json::parse(read_text(directory / "summary.json"));
      CHECK(run["test_accuracy"] == summary["test_accuracy"]);
      CHECK(read_text(directory / "job.txtpb").find("target_accuracy") == std::string::npos);
      ends.push_back(summary["test_accuracy"]);
    }
    CHECK(of["test_accuracy"]["median"].get<double>() == Approx((ends[0] + ends[1]) / 2.0));
    CHECK(of["test_accuracy"]["least"] == std::min(ends[0], ends[1]));
    CHECK(of["epoch_accuracy"][1]["test_accuracy"] == of["test_accuracy"]);
  }
  CHECK(result["cases"][0]["replica_distance"]["median"] == 0.0);  // one learner
  CHECK(result["cases"][3]["replica_distance"]["median"] > result["cases"][1]["replica_distance"]["median"]);
  CHECK_THAT(read_text(program / "out/3-logistic-digits/seed-1/job.txtpb"), ContainsSubstring("period: 4"));
  CHECK_THAT(read_text(program / "out/bench.md"), ContainsSubstring("| sma{period: 4}, 2 learners | 2 of 2 |"));
  CHECK_THAT(read_text(program / "out/accuracy-over-epochs.svg"), ContainsSubstring("class=\"band s3\""));
  CHECK_THAT(read_text(program / "out/accuracy-over-learners.svg"), ContainsSubstring("class=\"whisker s1\""));
}

TEST_CASE("bench: --no-target trains past the target of the job") {
  const Program program;
  const Completed done = program.run(bench({"--seeds", "1", "--set", "training.max_epochs=2", "--no-target"}));
  CHECK(done.exit_code == 0);
  std::string job = read_text(Program::config("logistic-digits"));
  job.replace(job.find("max_epochs: 10"), 14, "max_epochs: 2 target_accuracy: 0.2");
  write_text(program / "job.txtpb", job);
  CHECK(program.run({"bench", "job.txtpb", "--seeds", "1", "--output", "stops"}).exit_code == 0);
  CHECK(program.run({"bench", "job.txtpb", "--seeds", "1", "--output", "goes-on", "--no-target"}).exit_code == 0);
  const auto run_in = [&](const std::string& name) {
    return json::parse(read_text(program / (name + "/bench.json")))["cases"][0]["runs"][0];
  };
  CHECK(run_in("stops")["epochs"] == 1);
  CHECK(run_in("stops")["outcome"] == "target_reached");
  CHECK(run_in("goes-on")["epochs"] == 2);
  CHECK(run_in("goes-on")["outcome"] == "completed");
}

TEST_CASE("bench: without a target, a run that diverges exits 7") {
  const Program program;
  const Completed done =
      program.run({"bench", Program::config("lenet-digits"), "--no-target", "--seeds", "1", "--set",
                   "learning_rate.base=1000", "--set", "learners.per_device.fixed=2", "--output", "out"});
  INFO(done.err);
  INFO(done.out);
  CHECK(done.exit_code == 7);
  CHECK_THAT(done.out, ContainsSubstring("0 of 1, 1 diverged"));
}

TEST_CASE("bench: --resume keeps finished runs and repeats unfinished ones") {
  const Program program;
  // A directory that does not exist is a new bench.
  REQUIRE(program.run(bench(joined(kTwoRuns, {"--resume"}))).exit_code == 0);
  const json first = result_in(program);
  CHECK(first["resumptions"].empty());
  make_unfinished(program);
  write_text(program / "out/1-logistic-digits/seed-3/kept", "");
  write_text(program / "out/2-logistic-digits/seed-3/removed", "");
  write_text(program / "out/2-logistic-digits/other", "");

  const Completed done = program.run(bench(joined(kTwoRuns, {"--resume"})));
  INFO(done.err);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.err, ContainsSubstring("after 1 of 2 runs") && ContainsSubstring("run 2 of 2"));
  CHECK(done.err.find("run 1 of 2") == std::string::npos);
  CHECK(fs::exists(program / "out/1-logistic-digits/seed-3/kept"));
  CHECK_FALSE(fs::exists(program / "out/2-logistic-digits/seed-3/removed"));
  CHECK(fs::exists(program / "out/2-logistic-digits/other"));
  const json second = result_in(program);
  CHECK(second["status"] == "complete");
  CHECK(second["started"] == first["started"]);
  CHECK(second["cases"][0]["runs"] == first["cases"][0]["runs"]);
  CHECK(second["cases"][1]["runs"][0]["outcome"] == "completed");
  CHECK(second["cases"][1]["test_accuracy"] == first["cases"][1]["test_accuracy"]);  // because the seed is the same
  REQUIRE(second["resumptions"].size() == 1);
  CHECK(second["resumptions"][0]["runs_kept"] == 1);
  CHECK(second["resumptions"][0]["changed"].empty());

  // A third call has nothing left to run and prints the same.
  const Completed again = program.run(bench(joined(kTwoRuns, {"--resume"})));
  CHECK(again.exit_code == 0);
  CHECK(again.out == done.out);
  CHECK(again.err.find("run 2 of 2") == std::string::npos);
  CHECK(result_in(program)["resumptions"] == second["resumptions"]);

  // A run whose files are gone runs again, and a changed machine is reported.
  json other = result_in(program);
  other["machine"]["processor"] = "another";
  write_result(program, other);
  fs::remove_all(program / "out/1-logistic-digits/seed-3");
  const Completed lost = program.run(bench(joined(kTwoRuns, {"--resume"})));
  CHECK(lost.exit_code == 0);
  CHECK_THAT(lost.err, ContainsSubstring("'out/1-logistic-digits/seed-3' runs again: it has left no summary.json"));
  CHECK_THAT(lost.out, ContainsSubstring("changed since the bench began: processor"));
  CHECK(result_in(program)["resumptions"].size() == 2);
}

TEST_CASE("bench: --resume of another plan, or of a directory without a bench, is refused and changes nothing") {
  const Program program;
  write_text(program / "job.txtpb", read_text(Program::config("logistic-digits")));
  const std::vector<std::string> without_seeds = {"bench", "job.txtpb", "--output",
                                                  "out",   "--set",     "training.max_epochs=1"};
  const std::vector<std::string> same = joined(without_seeds, {"--seeds", "3"});
  REQUIRE(program.run(same).exit_code == 0);
  const std::string before = read_text(program / "out/bench.json");
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const Completed done = program.run(arguments);
    CHECK(done.exit_code == 2);
    CHECK(done.out.empty());
    CHECK(read_text(program / "out/bench.json") == before);
    CHECK(fs::exists(program / "out/1-logistic-digits/seed-3/summary.json"));
    return done.err;
  };
  CHECK_THAT(refused(same), ContainsSubstring("'out' is there already") && ContainsSubstring("--resume"));
  CHECK_THAT(refused(joined(without_seeds, {"--resume", "--seeds", "4"})), ContainsSubstring("[3] then, and [4] now"));
  CHECK_THAT(refused(joined(same, {"--resume", "--target", "0.5"})), ContainsSubstring("null then, and 0.5 now"));
  CHECK_THAT(refused(joined(same, {"--resume", "--trace"})), ContainsSubstring("--trace is false then, and true now"));
  CHECK_THAT(refused(joined(same, {"--resume", "--vary", "training.batch_size=32,64"})),
             ContainsSubstring("case 1 is \"logistic-digits\" then"));
  CHECK_THAT(refused(joined(same, {"--resume", "job.txtpb"})), ContainsSubstring("its number of cases is 1 then"));
  CHECK_THAT(refused(joined(same, {"--resume", "--set", "training.batch_size=64"})),
             ContainsSubstring("'logistic-digits' has changed since"));
  std::string job = read_text(program / "job.txtpb");
  job.replace(job.find("base: 0.01"), 10, "base: 0.02");
  write_text(program / "job.txtpb", job);
  CHECK_THAT(refused(joined(same, {"--resume"})), ContainsSubstring("'logistic-digits' has changed since"));

  fs::create_directory(program / "other");
  write_text(program / "other/file", "mine");
  const Completed other = program.run({"bench", "job.txtpb", "--output", "other", "--resume"});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("'other' holds no bench to go on with (bench.json is missing)"));
  CHECK_FALSE(fs::exists(program / "other/.lock"));

  fs::create_directories(program / "locked/.lock");
  const Completed locked = program.run({"bench", "job.txtpb", "--output", "locked", "--resume"});
  CHECK(locked.exit_code == 2);
  CHECK_THAT(locked.err, ContainsSubstring("cannot lock the output directory 'locked'"));

  for (const char* damaged : {"{}", "not JSON", ""}) {
    write_text(program / "out/bench.json", damaged);
    const Completed done = program.run(joined(same, {"--resume"}));
    CHECK(done.exit_code == 4);
    CHECK_THAT(done.err, ContainsSubstring("'out/bench.json' is damaged"));
    CHECK(fs::exists(program / "out/1-logistic-digits/seed-3/summary.json"));
  }
}

TEST_CASE("bench: a killed bench can be resumed, by one process at a time") {
  const Program program;
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);  // so that this process becomes the parent of the run that is left
                                                   // behind
  const std::vector<std::string> endless = bench(
      {"--seeds", "1", "--set", "training.max_epochs=1000000", "--set", "learners.per_device.fixed=1", "--resume"});
  const fs::path begun = program / "out/1-logistic-digits/seed-1/job.txtpb";
  Subprocess killed = program.start(endless);
  while (!fs::exists(begun)) REQUIRE(killed.is_running());
  const Completed second = program.run(endless);
  CHECK(second.exit_code == 2);
  CHECK_THAT(second.err, ContainsSubstring("another bench works in 'out'"));
  killed.send(SIGKILL);
  CHECK(killed.wait().exit_code == -SIGKILL);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
  CHECK(errno == ECHILD);
  CHECK(result_in(program)["status"] == "running");
  REQUIRE(fs::exists(program / "out/1-logistic-digits/seed-1/summary.json"));

  Subprocess resumed = program.start(endless);
  REQUIRE(resumed.wait_for_message("run 1 of 1"));
  // By now the files of the earlier run have been removed.
  while (!fs::exists(begun)) REQUIRE(resumed.is_running());
  CHECK_FALSE(fs::exists(program / "out/1-logistic-digits/seed-1/summary.json"));
  resumed.send(SIGINT);
  CHECK(resumed.wait().exit_code == 128 + SIGINT);
  CHECK(result_in(program)["cases"][0]["runs"][0]["outcome"] == "stopped");
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

}  // namespace arbalest::tests
