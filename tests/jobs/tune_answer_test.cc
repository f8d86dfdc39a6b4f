// The answer of `arbalest tune`, on quiet and busy machines, from crafted measurements.
#include "study/tune_answer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "study/tune_report.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {
namespace {

// On two cores. `threads`: of each learner.
TunePoint point_at(int learners, int threads, double rate, double per_processor_second, double lost) {
  return {.learners = {learners},
          .threads = {threads},
          .images_per_second = rate,
          .error = 0.005,
          .windows = 12,
          .lost = lost,
          .images_per_processor_second = per_processor_second,
          .processor_error = 0.01,
          .cores = std::min(2, learners * threads),
          .learner_bytes = 1 << 20};
}

TuneResult result_of(std::vector<TunePoint> sweep, bool was_quiet, double lost) {
  TuneResult result{.job = "lenet",
                    .devices = {"cpu"},
                    .batch_size = 32,
                    .precision = "float32",
                    .chosen = {},
                    .reason = {},
                    .points = sweep,
                    .sweep = {},
                    .machine = {.is_known = true, .was_quiet = was_quiet, .lost = lost, .disturbed_windows = 40}};
  result.baseline = sweep.front();
  result.sweep = std::move(sweep);
  answer(result);
  return result;
}

}  // namespace

TEST_CASE("tune answer: on a quiet machine the gain over one learner is by the clock, with its error") {
  const TuneResult result = result_of(
      {point_at(1, 2, 1000.0, 520.0, 0.0), point_at(2, 1, 1170.0, 590.0, 0.0), point_at(4, 1, 1180.0, 595.0, 0.0)},
      true, 0.01);
  CHECK(result.chosen == std::vector<int>{2});  // fewer learners, within 3 %
  REQUIRE(result.gain.has_value());
  CHECK(result.gain->ratio == Approx(1.17));
  CHECK(result.gain->error == Approx(1.17 * 0.005 * std::sqrt(2.0)));
  CHECK_FALSE(result.gain->by_processor_time);
  CHECK(result.regret.value() == Approx(10.0 / 1180.0));
  CHECK(result.regret_error == Approx(1170.0 / 1180.0 * 0.005 * std::sqrt(2.0)));
  CHECK_THAT(result.reason, ContainsSubstring("2 learners reached 1170 examples/s to within 0.5 %, within 3 % of the "
                                              "1180 of 4 learners: the fewer learners are chosen; 1.17 (standard "
                                              "error 0.01) times as fast as one learner"));
  CHECK(may_be_remembered(result));
  CHECK_THAT(to_text(result), ContainsSubstring("0.8 % slower than the best of the sweep (standard error 0.7 %)") &&
                                  ContainsSubstring("40 windows were repeated") && !ContainsSubstring("BUSY"));
  const auto json = to_json(result);
  CHECK(json["machine"]["is_quiet"] == true);
  CHECK(json["machine"]["disturbed_windows"] == 40);
  CHECK(json["gain"]["by"] == "examples_per_second");
  CHECK(json["sweep"][1]["lost"] == 0.0);
  CHECK(json["sweep"][1]["images_per_processor_second"] == 590.0);
  CHECK(json["sweep"][1]["windows"] == 12);
}

TEST_CASE("tune answer: on a busy machine processor time decides, the clock's ratio is not claimed, and it says so") {
  // By the clock two learners are 46 times as fast as one. While one of the one learner's two threads waited, the other
  // one spun. One thread, which would be as fast on each core, gives a lower bound.
  TuneResult result =
      result_of({point_at(1, 2, 50.0, 260.0, 1.0 / 3), point_at(2, 1, 2300.0, 600.0, 0.3)}, false, 0.34);
  result.fewer_threads = {point_at(1, 1, 500.0, 510.0, 0.1)};
  answer(result);
  CHECK(result.chosen == std::vector<int>{2});
  REQUIRE(result.gain.has_value());
  CHECK(result.gain->is_lower_bound);
  CHECK(result.gain->ratio == Approx(600.0 / 510.0));
  CHECK(result.gain->by_processor_time);
  CHECK_FALSE(may_be_remembered(result));
  const std::string text = to_text(result);
  CHECK_THAT(text, ContainsSubstring("THE MACHINE WAS BUSY: other programs took 34 % of the processor time") &&
                       ContainsSubstring("the result is not cached") &&
                       ContainsSubstring("by processor time that is at least 1.18 (standard error 0.02) times") &&
                       !ContainsSubstring("46.0") && !ContainsSubstring("than the best of the sweep"));
  const auto json = to_json(result);
  CHECK(json["machine"]["is_known"] == true);
  CHECK(json["machine"]["is_quiet"] == false);
  CHECK(json["machine"]["lost"] == 0.34);
  CHECK(json["may_be_remembered"] == false);
  CHECK(json["gain"]["by"] == "processor_time");
  CHECK(json["gain"]["is_lower_bound"] == true);
  CHECK_THAT(to_svg(result), ContainsSubstring("on a busy machine"));
  // How much of the time two threads have used in vain cannot be told.
  result = result_of({point_at(1, 2, 50.0, 260.0, 0.45), point_at(2, 1, 2300.0, 600.0, 0.3)}, false, 0.34);
  CHECK_FALSE(result.gain.has_value());
  CHECK_THAT(to_text(result), ContainsSubstring("they took too much for a comparison with one learner"));
  CHECK(to_json(result)["gain"].is_null());
  // One thread on one core needs the least processor time for an image, but leaves a core idle.
  result = result_of({point_at(1, 1, 600.0, 620.0, 0.0), point_at(2, 1, 700.0, 600.0, 0.3)}, false, 0.2);
  CHECK(result.chosen == std::vector<int>{2});
}

TEST_CASE("tune answer: where there was nothing to choose, a busy machine changes nothing about the answer") {
  const TuneResult result = result_of({point_at(1, 2, 50.0, 520.0, 0.4)}, false, 0.4);
  CHECK(result.chosen == std::vector<int>{1});
  CHECK(may_be_remembered(result));
}

TEST_CASE("tune answer: without the processor time the clock decides, and nothing is said about other programs") {
  TuneResult result = result_of({point_at(1, 2, 1000.0, 0.0, 0.0), point_at(2, 1, 1170.0, 0.0, 0.0)}, true, 0.0);
  for (auto* points : {&result.points, &result.sweep}) {
    for (TunePoint& point : *points) point.lost = point.images_per_processor_second = std::nullopt;
  }
  result.machine = {};
  result.baseline = result.sweep.front();
  answer(result);
  CHECK(result.gain->ratio == Approx(1.17));
  CHECK_THAT(to_text(result), !ContainsSubstring("per processor s") && !ContainsSubstring("repeated"));
  CHECK(to_json(result)["machine"]["lost"].is_null());
  CHECK(to_json(result)["sweep"][0]["lost"].is_null());
}

TEST_CASE("tune answer: a learner with fewer threads that is faster is advice, not the choice") {
  TuneResult result = result_of({point_at(1, 2, 1000.0, 520.0, 0.0), point_at(2, 1, 1170.0, 590.0, 0.0)}, true, 0.0);
  result.fewer_threads = {point_at(1, 1, 1150.0, 1150.0, 0.0)};
  CHECK_THAT(to_text(result), !ContainsSubstring("give it fewer cores"));
  result.fewer_threads = {point_at(1, 1, 1500.0, 1500.0, 0.0)};
  CHECK_THAT(to_text(result), ContainsSubstring("1 learner with 1 thread is 1.28 (standard error 0.01) times as fast: "
                                                "give it fewer cores, as in devices: 'cpu:0'"));
  CHECK(to_json(result)["fewer_threads"][0]["threads"] == 1);
  CHECK(to_json(result)["one_learner"]["images_per_second"] == 1000.0);
}

TEST_CASE("tune answer: the chart has error bars of two standard errors") {
  TuneResult result = result_of({point_at(1, 2, 1000.0, 520.0, 0.0), point_at(2, 1, 1170.0, 590.0, 0.0)}, true, 0.0);
  const auto whiskers = [](const std::string& svg) {
    const std::string mark = "<path class=\"whisker";
    std::vector<std::string> found;
    for (std::size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
      found.push_back(svg.substr(at, svg.find("/>", at) - at));
    }
    return found;
  };
  const std::vector<std::string> exact = whiskers(to_svg(result));
  CHECK(exact.size() == 2);
  for (TunePoint& point : result.sweep) point.error = 0.05;
  const std::vector<std::string> inexact = whiskers(to_svg(result));
  CHECK(inexact.size() == 2);
  CHECK(inexact != exact);
}

}  // namespace arbalest::jobs
