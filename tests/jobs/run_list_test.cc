#include "report/run_list.h"

#include "engine/base/error.h"
#include "report/run_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace fs = std::filesystem;
using tests::TemporaryDirectory;
using tests::write_text;

namespace {

constexpr const char* kStart = "{\"event\":\"start\",\"job\":\"small\"}\n";

std::string epoch(int number, double accuracy) {
  return fmt::format("{{\"event\":\"epoch\",\"epoch\":{},\"test_accuracy\":{},\"elapsed_seconds\":{}}}\n", number,
                     accuracy, 10 * number);
}

void write_run(const fs::path& directory, const std::string& metrics, const std::string& summary) {
  fs::create_directories(directory);
  write_text(directory / "metrics.jsonl", metrics);
  if (!summary.empty()) write_text(directory / "summary.json", summary);
}

}  // namespace

TEST_CASE("runs are listed by name with status, epochs and accuracies") {
  const TemporaryDirectory runs;
  write_run(runs / "b", kStart + epoch(1, 0.75) + epoch(2, 0.5) + "{\"event\":\"finish\",\"test_accuracy\":0.5}\n",
            "{\"status\":\"completed\"}");
  write_run(runs / "a", kStart + epoch(1, 0.25), "");
  fs::create_directories(runs / "not a run");
  write_text(runs / "file", "text");

  const std::vector<ListedRun> found = list_runs(runs.path());
  REQUIRE(found.size() == 2);
  CHECK(found[0].directory == runs / "a");
  CHECK(found[0].status == "killed");
  CHECK(found[0].epochs == 1);
  CHECK(found[1].job == "small");
  CHECK(found[1].status == "completed");
  CHECK(found[1].epochs == 2);
  CHECK(found[1].last == 0.5);
  CHECK(found[1].best == 0.75);
  CHECK(found[1].time_seconds == 20.0);
  CHECK(found[1].test == 0.5);
  CHECK_FALSE(found[0].test.has_value());
  CHECK_THAT(runs_table(found), ContainsSubstring("completed       2  test  50.00 %  75.00 %  50.00 %  0:20"));
  CHECK(to_json(found[1])["best"] == 0.75);
  CHECK(list_runs(runs / "b").size() == 1);  // a run's own directory
}

TEST_CASE("the runs of a bench are listed, and nothing inside a run") {
  const TemporaryDirectory runs;
  write_run(runs / "bench/1-lenet/seed-1", kStart + epoch(1, 0.5), "{\"status\":\"completed\"}");
  write_run(runs / "bench/2-lenet/seed-7", kStart + epoch(1, 0.25), "");
  write_run(runs / "b", kStart, "");
  write_run(runs / "b/checkpoints/000000000010", kStart, "");
  write_run(runs / "far/below/the/bench", kStart, "");
  fs::create_directory_symlink(runs / "bench", runs / "loop");
  fs::create_directory_symlink(runs / "b", runs / "link");
  const auto names_in = [&](const fs::path& directory) {
    std::vector<std::string> names;
    for (const ListedRun& run : list_runs(directory))
      names.push_back(run.directory.lexically_relative(directory).string());
    return names;
  };
  CHECK(names_in(runs.path()) == std::vector<std::string>{"b", "bench/1-lenet/seed-1", "bench/2-lenet/seed-7", "link"});
  CHECK(names_in(runs / "bench") == std::vector<std::string>{"1-lenet/seed-1", "2-lenet/seed-7"});
}

TEST_CASE("a predictor of numbers is listed with its least error") {
  const TemporaryDirectory runs;
  const std::string epochs =
      "{\"event\":\"epoch\",\"epoch\":1,\"test_rmse\":0.8}\n{\"event\":\"epoch\",\"epoch\":2,\"test_rmse\":0.9}\n";
  write_run(runs / "a", kStart + epochs, "{\"status\":\"stopped\"}");
  const ListedRun run = list_runs(runs.path()).front();
  CHECK(run.metric == "test_rmse");
  CHECK(run.last == 0.9);
  CHECK(run.best == 0.8);
  CHECK_THAT(runs_table({&run, 1}), ContainsSubstring("0.9000  0.8000"));
}

TEST_CASE("a run with a validation set is listed by it, with the test accuracy at its end") {
  const TemporaryDirectory runs;
  const std::string epochs =
      "{\"event\":\"epoch\",\"epoch\":1,\"validation_accuracy\":0.75,\"elapsed_seconds\":10}\n"
      "{\"event\":\"epoch\",\"epoch\":2,\"validation_accuracy\":0.5,\"elapsed_seconds\":20}\n";
  const std::string finish = "{\"event\":\"finish\",\"test_accuracy\":0.25,\"best_test_accuracy\":null}\n";
  write_run(runs / "a", kStart + epochs + finish, "{\"status\":\"completed\"}");
  write_run(runs / "b", kStart + epochs + finish + "{\"event\":\"resume\"}\n", "{\"status\":\"stopped\"}");
  const std::vector<ListedRun> found = list_runs(runs.path());
  REQUIRE(found.size() == 2);
  CHECK(found[0].metric == "validation_accuracy");
  CHECK(found[0].last == 0.5);
  CHECK(found[0].best == 0.75);
  CHECK(found[0].test == 0.25);
  CHECK(to_json(found[0])["test"] == 0.25);
  CHECK_THAT(runs_table(found), ContainsSubstring("completed       2  validation  50.00 %  75.00 %  25.00 %  0:20"));
  CHECK_FALSE(found[1].test.has_value());  // of the model before the run went on

  const std::string errors = "{\"event\":\"epoch\",\"epoch\":1,\"validation_rmse\":0.8}\n";
  write_run(runs / "c", kStart + errors + "{\"event\":\"finish\",\"test_rmse\":0.9}\n", "{\"status\":\"stopped\"}");
  const ListedRun numbers = list_runs(runs / "c").front();
  CHECK(numbers.metric == "validation_rmse");
  CHECK_THAT(runs_table({&numbers, 1}), ContainsSubstring("validation  0.8000  0.8000  0.9000"));
}

TEST_CASE("a run is running while its directory is claimed, and killed when the claim is gone without a summary") {
  const TemporaryDirectory runs;
  {
    RunDirectory claimed(runs / "a", "small");
    RunStart start;
    start.job_text = "text";
    claimed.on_start(start);
    CHECK(list_runs(runs.path()).front().status == "running");
  }
  CHECK(list_runs(runs.path()).front().status == "killed");
}

TEST_CASE("damaged files of a run are told, but an unfinished last line is not damage") {
  const TemporaryDirectory runs;
  write_run(runs / "cut", kStart + epoch(1, 0.25) + "{\"event\":\"ep", "");
  write_run(runs / "damaged", kStart + std::string("garbage\n") + epoch(1, 0.25), "{\"status\":\"completed\"}");
  write_run(runs / "summary", kStart, "garbage");
  const std::vector<ListedRun> found = list_runs(runs.path());
  REQUIRE(found.size() == 3);
  CHECK(found[0].problem.empty());
  CHECK(found[0].epochs == 1);
  CHECK(found[1].problem == "metrics.jsonl:2 is damaged");
  CHECK(found[1].epochs == 1);
  CHECK(found[2].problem == "summary.json is damaged");
  CHECK(found[2].status == "unknown");
}

TEST_CASE("a directory that cannot be listed is refused") {
  const TemporaryDirectory runs;
  CHECK_THROWS_WITH(list_runs(runs / "nowhere"), ContainsSubstring("cannot list the runs in"));
}

}  // namespace arbalest::jobs
