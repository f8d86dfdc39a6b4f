// Jobs that are refused for new runs, because their steps grow twice with the learners, in runs that have begun.
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/training/watched_run.h"
#include "train/train.h"

namespace arbalest::tests {

TEST_CASE("a job whose steps grow twice is refused for a new run, and a run of an earlier version goes on",
          "[training]") {
  const std::vector<std::string> settings = {"devices=cpu", "learners.per_device.fixed=2", "synchronization=ea_sgd{}",
                                             "training.max_epochs=1"};
  CHECK_THROWS_WITH(load("lenet-digits.txtpb", settings), ContainsSubstring("these steps are likely to diverge"));
  const jobs::JobOptions job =
      jobs::parse_job(jobs::read_job_file(source_directory() + "/configs/lenet-digits.txtpb"), settings);
  REQUIRE(job.growth_error.has_value());
  const TemporaryDirectory output;
  CHECK_THROWS_WITH(train_part(job, output.path()), ContainsSubstring("set learning_rate.with_learners: KEEP"));
  CHECK_FALSE(std::filesystem::exists(output.path() / "metrics.jsonl"));
  CHECK_THROWS_WITH(jobs::dry_run(job, {}), ContainsSubstring("these steps are likely to diverge"));
  jobs::JobOptions earlier = job;
  earlier.growth_error.reset();  // the version that has begun the run knew no such rule
  const Part first = train_part(earlier, output.path(), 30);
  REQUIRE(first.summary.status == jobs::RunStatus::kStopped);
  const Part last = train_part(job, output.path());
  CHECK(last.resumed);
  CHECK(last.summary.status == jobs::RunStatus::kTargetReached);
  CHECK(last.summary.epochs == 1);
}

}  // namespace arbalest::tests
