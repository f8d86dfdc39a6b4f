// Where a job's central model has its batch norm statistics from.
#include <memory>

#include "jobs/run/session.h"
#include "tests/support/catch.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

std::unique_ptr<jobs::Session> trained(const std::string& statistics) {
  jobs::JobOptions job = load("convnet-digits.txtpb", {"devices=cpu", "learners.per_device.fixed=2",
                                                       "training.batch_norm_statistics=" + statistics});
  auto session = jobs::open_session(job, "", jobs::Session::Purpose::kTraining, {});
  session->scheduler().advance(session->training_ring(), 5);
  session->scheduler().drain();
  return session;
}

bool is_statistic(const std::string& name) { return name.find(".running_") != std::string::npos; }

}  // namespace

TEST_CASE("a job says where the central model's statistics come from, and nothing else depends on it", "[training]") {
  const auto estimating = trained("REESTIMATED");
  const auto averaging = trained("AVERAGED");
  const auto carried = averaging->scheduler().snapshot();
  const auto estimated = estimating->scheduler().snapshot();
  const auto before_estimating = estimating->scheduler().snapshot(scheduler::Statistics::kAveraged);
  REQUIRE(carried.size() == estimated.size());
  for (std::size_t i = 0; i < carried.size(); ++i) {
    CAPTURE(carried[i].name);
    CHECK((carried[i].values == estimated[i].values) == !is_statistic(carried[i].name));
    CHECK(carried[i].values == before_estimating[i].values);
  }
}

}  // namespace arbalest::tests
