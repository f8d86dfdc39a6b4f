// The search and the sweep of `arbalest tune`, as the program runs them.
#include <algorithm>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "jobs/study/tune.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/training/memory_limit.h"
#include "tests/training/whole_run.h"

namespace arbalest::tests {

TEST_CASE("tune: the sweep of unlike devices measures the chosen numbers beside the equal ones", "[training]") {
  const auto cores = engine::host::allowed_cores();
  if (cores.size() < 3) skip_test("it takes three cores");
  jobs::JobOptions job = load("logistic-digits.txtpb", {"learners.per_device.auto={max: 4}"});
  job.devices = {engine::parse_device(fmt::format("cpu:{},{}", cores[0], cores[1])),
                 engine::parse_device(fmt::format("cpu:{}", cores[2]))};
  job.learners_per_device = {1, 1};
  const jobs::TuneResult result = jobs::tune(job, {}, {.sweep = true}, [](const std::string&) {});
  REQUIRE(result.chosen.size() == 2);
  REQUIRE_FALSE(result.points.empty());
  // The second device was the last, so these are its numbers.
  for (const jobs::TunePoint& point : result.points) {
    CHECK(point.learners.front() == result.chosen.front());
    CHECK(point.learner_bytes > 0);
    CHECK(point.images_per_second > 0.0);
  }
  CHECK(std::ranges::count(result.points, result.chosen, &jobs::TunePoint::learners) == 1);
  CHECK(std::ranges::count(result.sweep, result.chosen, &jobs::TunePoint::learners) == 1);
  for (const int learners : {1, 2, 4}) {
    CHECK(std::ranges::count(result.sweep, std::vector{learners, learners}, &jobs::TunePoint::learners) == 1);
  }
  for (const jobs::TunePoint& point : result.sweep) CHECK(point.learner_bytes > 0);
  REQUIRE(result.regret.has_value());
  CHECK(*result.regret >= 0.0);
}

}  // namespace arbalest::tests
