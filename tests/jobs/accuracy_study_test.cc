// Which number of learners is said to reach an accuracy first.
#include "jobs/study/accuracy_study.h"

#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

AccuracyPoint reached(int learners, double seconds) { return {.learners = learners, .seconds = seconds, .epochs = 3}; }
AccuracyPoint missed(int learners) { return {.learners = learners}; }

// 0: none
int chosen(const std::vector<AccuracyPoint>& points) {
  const AccuracyPoint* point = choose(points);
  return point == nullptr ? 0 : point->learners;
}

}  // namespace

TEST_CASE("the number of learners that reaches the target first is chosen, of those alike the fewest") {
  CHECK(chosen({}) == 0);
  CHECK(chosen({missed(1), missed(2)}) == 0);
  CHECK(chosen({reached(1, 10.0), reached(2, 6.0), reached(4, 5.0), missed(8)}) == 4);
  CHECK(chosen({missed(1), reached(2, 6.0), reached(4, 7.0)}) == 2);
  CHECK(chosen({reached(1, 10.0), reached(2, 5.14), reached(4, 5.0)}) == 2);  // 2.8 % later
  CHECK(chosen({reached(1, 10.0), reached(2, 5.16), reached(4, 5.0)}) == 4);  // 3.2 %
  CHECK(chosen({reached(1, 5.25), reached(2, 5.1), reached(4, 5.0)}) == 2);   // not step by step to ever later ones
  CHECK(chosen({reached(1, 5.0), reached(2, 5.0)}) == 1);
}

TEST_CASE("what was not reached is null to programs and a dash to people") {
  AccuracyStudy study{.job = "job",
                      .devices = {"cpu:0", "cpu:1"},
                      .precision = "FP32",
                      .target = 0.99,
                      .max_epochs = 4,
                      .reason = "why",
                      .points = {missed(1), reached(2, 6.0)}};
  auto json = to_json(study);
  CHECK(json["chosen"].is_null());
  CHECK(json["points"][0]["time_to_accuracy_seconds"].is_null());
  CHECK(json["points"][0]["test_accuracy"].is_null());
  CHECK(json["points"][1]["time_to_accuracy_seconds"] == 6.0);
  CHECK(json["points"][1]["epochs_to_accuracy"] == 3);
  study.chosen = 2;
  json = to_json(study);
  CHECK(json["chosen"] == std::vector<int>{2, 2});  // of each device
  CHECK_THAT(to_text(study), ContainsSubstring(" - ") && ContainsSubstring("chosen") && ContainsSubstring("why"));
}

}  // namespace arbalest::jobs
