// Tests which batch norm statistics the central model of a job gets.
#include <memory>

#include "jobs/run/session.h"
#include "tests/support/catch.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

namespace {

std::unique_ptr<jobs::Session> trained(const std::string& statistics, int examples = 2048) {
  jobs::JobOptions job = load("convnet-digits.txtpb", {"devices=cpu", "learners.per_device.fixed=2",
                                                       "training.batch_norm_statistics=" + statistics,
                                                       "training.batch_norm_examples=" + std::to_string(examples)});
  auto session = jobs::open_session(job, "", jobs::Session::Purpose::kTraining, {});
  session->scheduler().advance(session->training_ring(), 5);
  session->scheduler().drain();
  return session;
}

// Distance between the first layers' running means.
double distance(const std::vector<dataflow::NamedTensor>& a, const std::vector<dataflow::NamedTensor>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != "norm1.running_mean") continue;
    for (std::size_t c = 0; c < a[i].values.size(); ++c) sum += std::abs(a[i].values[c] - b[i].values[c]);
  }
  return sum;
}

bool is_statistic(const std::string& name) { return name.find(".running_") != std::string::npos; }

}  // namespace

TEST_CASE("a job chooses the source of the central model's statistics, and nothing else changes", "[training]") {
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

TEST_CASE("statistics are estimated on the number of examples that the job sets", "[training]") {
  const auto of_all = trained("REESTIMATED", 1'000'000)->scheduler().snapshot();
  const auto of_few = trained("REESTIMATED", 1)->scheduler().snapshot();
  const auto of_many = trained("REESTIMATED", 16'000)->scheduler().snapshot();
  CHECK(distance(of_many, of_all) > 0.0);
  CHECK(distance(of_many, of_all) < 0.5 * distance(of_few, of_all));
}

}  // namespace arbalest::tests
