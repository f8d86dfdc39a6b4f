// The sums of the metrics in a checkpoint's state.
#include "checkpoint/run_state_text.h"

#include "checkpoint/saved_run.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

TEST_CASE("run state: all sums of the epoch under way are kept, to the last bit") {
  SavedRun saved;
  saved.run.epoch.tasks = 3;
  for (std::size_t i = 0; i < saved.run.epoch.sums.values.size(); ++i) {
    saved.run.epoch.sums.values[i] = 0.1 + static_cast<double>(i);
  }
  const SavedRun read = parse_run_state(run_state_text(saved));
  CHECK(read.run.epoch.tasks == 3);
  CHECK(read.run.epoch.sums.values == saved.run.epoch.sums.values);
}

TEST_CASE("run state: the size of teams is kept where it is searched") {
  SavedRun saved;
  CHECK(run_state_text(saved).find("team") == std::string::npos);
  saved.run.team = 4;
  CHECK(parse_run_state(run_state_text(saved)).run.team == 4);
}

TEST_CASE("run state: a checkpoint of an older program has loss and counts by name") {
  const SavedRun read = parse_run_state("epoch { tasks: 3 loss_sum: 1.5 correct: 40 correct_top5: 60 }");
  CHECK(read.run.epoch.sums.values == dataflow::MetricSums{{1.5, 40.0, 60.0}}.values);
}

}  // namespace arbalest::jobs
