// The search and the sweep of `arbalest tune`, run the way the program runs them.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/host/topology.h"
#include "study/accuracy_study.h"
#include "study/tune.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"
#include "tests/training/memory_limit.h"
#include "tests/training/whole_run.h"
#include "train/inspection.h"
#include "train/learners/failed_counts.h"

namespace arbalest::tests {

TEST_CASE("tune: on unlike devices the sweep measures equal numbers and the chosen numbers", "[training]") {
  const jobs::JobOptions job = tuned_on_unlike_devices();
  jobs::TuneResult found;
  const jobs::TuneResult result =
      jobs::tune(job, {}, {.sweep = true, .found = [&](const jobs::TuneResult& of_search) { found = of_search; }},
                 [](const std::string&) {});
  REQUIRE(result.chosen.size() == 2);
  // The sweep may have chosen other numbers than the search, which tuned the second device last.
  REQUIRE_FALSE(result.points.empty());
  // So the points of the search differ in the second number.
  for (const jobs::TunePoint& point : result.points) {
    CHECK(point.learners.front() == found.chosen.front());
    CHECK(point.learner_bytes > 0);
    CHECK(point.images_per_second > 0.0);
  }
  CHECK(std::ranges::count(result.points, found.chosen, &jobs::TunePoint::learners) == 1);
  CHECK(std::ranges::count(result.sweep, result.chosen, &jobs::TunePoint::learners) == 1);
  for (const int learners : {1, 2, 3, 4}) {
    CHECK(std::ranges::count(result.sweep, std::vector{learners, learners}, &jobs::TunePoint::learners) == 1);
  }
  for (const jobs::TunePoint& point : result.sweep) CHECK(point.learner_bytes > 0);
  const double chosen = std::ranges::find(result.sweep, result.chosen, &jobs::TunePoint::learners)->images_per_second;
  const double best = std::ranges::max(result.sweep, {}, &jobs::TunePoint::images_per_second).images_per_second;
  REQUIRE(result.regret.has_value());
  CHECK(*result.regret == Approx(1.0 - chosen / best));
}

TEST_CASE("tune: time to accuracy is measured with numbers that suit all devices") {
  jobs::JobOptions job;
  job.tuned = jobs::LearnerBounds{1, 8};
  job.devices = {{"cpu:0-2", {0, 1, 2}}, {"cpu:3-8", {3, 4, 5, 6, 7, 8}}};  // 1, 3, 6 and 1, 2, 3, 6
  using Counts = std::vector<autotuner::Configuration>;
  CHECK(jobs::studied_counts(job, false) == Counts{{1, 3}, {3, 1}, {6, 1}});
  std::ranges::reverse(job.devices);
  CHECK(jobs::studied_counts(job, false) == Counts{{1, 6}, {3, 2}, {6, 1}});
  CHECK(jobs::studied_counts(job, true).size() == 8);
}

TEST_CASE("tune: a learning rate at which training diverges does not end a throughput study", "[training]") {
  const jobs::JobOptions job =
      load("lenet-digits.txtpb", {"devices=cpu", "learning_rate.base=1000", "learners.per_device.auto={max: 2}"});
  const jobs::TuneResult result = jobs::tune(job, {}, {.sweep = true}, [](const std::string&) {});
  CHECK(result.is_complete);
  CHECK(result.regret.has_value());
}

TEST_CASE("tune: for goodput, every number has an efficiency, or the result says that it is unknown", "[training]") {
  const jobs::JobOptions job =
      load("logistic-digits.txtpb", {"devices=cpu", "learners.per_device.auto={max: 2 objective: GOODPUT}"});
  const jobs::TuneResult result = jobs::tune(job, {}, {.sweep = true}, [](const std::string&) {});
  CHECK(result.objective == jobs::TuningObjective::kGoodput);
  for (const auto* points : {&result.points, &result.sweep}) {
    CHECK_FALSE(points->empty());
    for (const jobs::TunePoint& point : *points) CHECK(point.efficiency.has_value() == result.noise_scale.has_value());
  }
  CHECK_THAT(result.reason, ContainsSubstring("of efficiency") ||
                                ContainsSubstring("the gradient noise scale is not known yet, so examples/s decide"));
}

TEST_CASE("tune: a sweep skips numbers that do not fit in memory, and the search's result is reported first",
          "[training][memory]") {
  if (kSanitized) skip_test("a sanitizer goes on taking memory of its own, and gets none, either");
  jobs::JobOptions job = wide_job(4'000, "auto { max: 3 }");
  job.devices = {engine::parse_device(fmt::format("cpu:{}", engine::host::allowed_cores().front()))};
  job.learners_per_device = {1};
  const std::int64_t learner = jobs::inspect(job).learner_bytes;
  std::optional<AddressSpaceLimit> limit;
  std::vector<std::string> lines;
  std::optional<jobs::TuneResult> found;
  // The first decision is to try two learners. They exist when the decision is reported. A third learner must not be
  // created.
  const auto tell = [&](const std::string& line) {
    lines.push_back(line);
    if (!limit) limit.emplace(learner / 2);
  };
  const jobs::TuneResult result = jobs::tune(
      job, {}, {.sweep = true, .found = [&](const jobs::TuneResult& of_search) { found = of_search; }}, tell);
  limit.reset();
  REQUIRE(found.has_value());
  CHECK_FALSE(found->chosen.empty());  // the sweep may have chosen another number
  CHECK_FALSE(found->points.empty());
  CHECK(found->sweep.empty());
  CHECK(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("do not fit") != std::string::npos && line.find("3 learners") != std::string::npos;
  }));
  CHECK(std::ranges::count(result.sweep, std::vector{3}, &jobs::TunePoint::learners) == 0);
  CHECK(std::ranges::count(result.sweep, std::vector{1}, &jobs::TunePoint::learners) == 1);
  for (const jobs::TunePoint& point : result.sweep) CHECK(point.images_per_second > 0.0);
}

TEST_CASE("if numbers did not fit, larger numbers on every device do not fit either, but smaller ones may") {
  jobs::FailedCounts lost;
  lost.add({2, 4}, {4, 4});
  CHECK(lost.contain({4, 4}));
  CHECK(lost.contain({4, 8}));
  CHECK_FALSE(lost.contain({8, 2}));
  lost.add({8, 1}, {2, 1});  // this change reduced the learners
  CHECK(lost.contain({2, 1}));
  CHECK_FALSE(lost.contain({4, 1}));
  CHECK_FALSE(lost.contain({2, 2}));
}

}  // namespace arbalest::tests
