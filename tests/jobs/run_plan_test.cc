// The plan of learners, schemes and learning rates that a job makes for its epochs.
#include "train/run_plan.h"

#include <cmath>
#include <tuple>

#include "tests/jobs/job_text.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

using Row = std::tuple<double, float, int, std::string>;

// 4 epochs of 625 mini-batches, a constant learning rate of 0.5.
std::vector<Row> plan(const std::string& synchronization, const std::string& per_device) {
  const JobOptions job = parse(
      "name: 'job' model { zoo { lenet {} } } data { digits {} } training { batch_size: 32 max_epochs: 4 }\n"
      "learning_rate { base: 0.5 fixed {} with_learners: SQRT } devices: 'cpu'\n"
      "synchronization { " +
      synchronization + " } learners { per_device { " + per_device + " } }");
  std::vector<Row> rows;
  for (const PlanRow& row : plan_of(job))
    rows.emplace_back(row.epoch, row.learning_rate, row.learners, row.synchronization);
  return rows;
}

}  // namespace

TEST_CASE("a plan follows the switches of a job and their scaling of the learning rate") {
  const std::vector<Row> rows =
      plan("sma {} switch { at_epoch: 1.5 s_sgd {} with_learners: LINEAR } switch { at_epoch: 3 learners: 1 swap {} }",
           "fixed: 4");
  CHECK(rows == std::vector<Row>{{0.0, 1.0F, 4, "sma"},
                                 {1.0, 1.0F, 4, "sma"},
                                 {1.5, 2.0F, 4, "s_sgd"},
                                 {2.0, 2.0F, 4, "s_sgd"},
                                 {3.0, 0.5F, 1, "swap"},
                                 {4.0, 0.5F, 1, "swap"}});
}

TEST_CASE("a plan follows the numbers of learners of a schedule and of a growth") {
  const std::vector<Row> scheduled =
      plan("s_sgd {}", "schedule { step { learners: 1 } step { at_batch: 1250 learners: 4 } }");
  CHECK(scheduled == std::vector<Row>{{0.0, 0.5F, 1, "s_sgd"},
                                      {1.0, 0.5F, 1, "s_sgd"},
                                      {2.0, 1.0F, 4, "s_sgd"},
                                      {3.0, 1.0F, 4, "s_sgd"},
                                      {4.0, 1.0F, 4, "s_sgd"}});
  const std::vector<Row> grown = plan("s_sgd {}", "growth { to: 4 epochs: 3 }");
  CHECK(grown == std::vector<Row>{{0.0, 0.5F, 1, "s_sgd"},
                                  {1.0, 0.5F, 1, "s_sgd"},
                                  {1.5, 0.5F * std::sqrt(2.0F), 2, "s_sgd"},
                                  {2.0, 0.5F * std::sqrt(2.0F), 2, "s_sgd"},
                                  {3.0, 1.0F, 4, "s_sgd"},
                                  {4.0, 1.0F, 4, "s_sgd"}});
}

TEST_CASE("a plan has a row at each restart of the learning rate") {
  const JobOptions job = parse(
      "name: 'job' model { zoo { lenet {} } } data { digits {} } training { batch_size: 32 max_epochs: 4 }\n"
      "learning_rate { base: 0.5 cosine {} restart { epoch: 2.5 factor: 0.5 } with_learners: KEEP } devices: 'cpu'\n"
      "learners { per_device { fixed: 1 } }");
  const std::vector<PlanRow> rows = plan_of(job);
  REQUIRE(rows.size() == 6);
  CHECK((rows[3].epoch == 2.5 && rows[3].learning_rate == 0.25F));
  // Half a cosine over 1.5 epochs, a third of which is over: 0.25 (1 + cos(pi / 3)) / 2.
  CHECK(rows[4].epoch == 3.0);
  CHECK(rows[4].learning_rate == Approx(0.1875));
}

}  // namespace arbalest::jobs
