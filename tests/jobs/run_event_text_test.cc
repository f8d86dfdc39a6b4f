// The console and metrics.jsonl tell what happens to a run between two epochs.
#include "report/run_event_text.h"

#include <fstream>
#include <limits>

#include <nlohmann/json.hpp>

#include "report/json.h"
#include "report/run_directory.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {

namespace {

RollbackRow some_rollback() {
  return {.batch = 1300,
          .epoch = 2.08,
          .elapsed_seconds = 7.5,
          .loss = std::numeric_limits<double>::infinity(),
          .reason = "training diverged: its loss is inf",
          .checkpoint = "run/checkpoints/000000000625",
          .to_batch = 625,
          .to_epoch = 1.0,
          .factor = 0.25,
          .rollbacks = 2,
          .most_rollbacks = 3,
          .learners_per_device = {2}};
}

}  // namespace

TEST_CASE("each line about a change of the run begins with the epoch") {
  ResizeRow resize{
      .batch = 100, .epoch = 1.254, .from = {1}, .to = {2}, .reason = "the schedule says so", .evidence = std::nullopt};
  CHECK(resize_text({"cpu"}, resize) == "epoch 1.25: learners: 2 instead of 1: the schedule says so\n");
  resize.to = {1};
  CHECK(resize_text({"cpu"}, resize) == "epoch 1.25: the schedule says so\n");
  resize.from_team = 1;
  resize.to_team = 2;
  CHECK(resize_text({"cuda:0"}, resize) == "epoch 1.25: teams of 2 instead of 1: the schedule says so\n");
  resize.to = {4};
  CHECK(resize_text({"cuda:0"}, resize) ==
        "epoch 1.25: learners: 4 instead of 1, in teams of 2: the schedule says so\n");
  CHECK(rate_drop_text({.epoch = 3.0, .factor = 0.1, .learning_rate = 0.002, .reason = "11 epochs in a row"}) ==
        "epoch 3.00: the learning rate drops to 0.002: 11 epochs in a row\n");
  CHECK(
      rollback_text(some_rollback()) ==
      "epoch 2.08: the run goes back to epoch 1.00 (run/checkpoints/000000000625) and on with 0.25 times the learning "
      "rate (roll-back 2 of 3)\n");
}

TEST_CASE("a roll-back and a drop of the learning rate are events of the log") {
  const tests::TemporaryDirectory output;
  {
    RunDirectory directory(output.path() / "run", "job");
    RunStart start;
    start.job = "job";
    start.learners_per_device = {1};
    directory.on_start(start);
    directory.on_rate_drop({.batch = 625, .epoch = 1.0, .factor = 0.1, .learning_rate = 0.002, .reason = "why"});
    directory.on_rollback(some_rollback());
  }
  std::ifstream file(output.path() / "run" / kMetricsFile);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  CHECK(line == R"({"event":"learning_rate_drop","batch":625,"epoch":1.0,"elapsed_seconds":0.0,"factor":0.1,)"
                R"("learning_rate":0.002,"reason":"why"})");
  std::getline(file, line);
  CHECK(line == R"({"event":"rollback","batch":1300,"epoch":2.08,"elapsed_seconds":7.5,"loss":null,)"
                R"("reason":"training diverged: its loss is inf","checkpoint":"run/checkpoints/000000000625",)"
                R"("to_batch":625,"to_epoch":1.0,"factor":0.25,"rollbacks":2,"learners_per_device":[2]})");
}

}  // namespace arbalest::jobs
