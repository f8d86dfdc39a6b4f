// Tests which number of learners counts as the first to reach an accuracy.
#include "jobs/study/accuracy_report.h"

#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

AccuracyPoint reached(int learners, double seconds) { return {.learners = learners, .seconds = seconds, .epochs = 3}; }
AccuracyPoint missed(int learners) { return {.learners = learners}; }

// The number of learners; 0: none.
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
  // equal times do not chain to ever later ones
  CHECK(chosen({reached(1, 5.25), reached(2, 5.1), reached(4, 5.0)}) == 2);
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
  CHECK(json["chosen"] == std::vector<int>{2, 2});  // by device
  CHECK_THAT(to_text(study), ContainsSubstring(" - ") && ContainsSubstring("chosen") && ContainsSubstring("why"));
}

TEST_CASE("a study of a job with a validation set shows the accuracies there") {
  AccuracyStudy study{.job = "job",
                      .devices = {"cpu:0"},
                      .precision = "FP32",
                      .target = 0.9,
                      .accuracy_set = EvaluationSet::kValidation,
                      .max_epochs = 4,
                      .reason = "why",
                      .points = {reached(1, 6.0)}};
  study.points[0].accuracy = 0.25;
  study.points[0].validation_accuracy = 0.5;
  study.points[0].best_validation_accuracy = 0.75;
  const auto json = to_json(study);
  CHECK(json["accuracy_set"] == "validation");
  CHECK(json["points"][0]["test_accuracy"] == 0.25);
  CHECK(json["points"][0]["validation_accuracy"] == 0.5);
  CHECK(json["points"][0]["best_validation_accuracy"] == 0.75);
  CHECK_THAT(to_text(study), ContainsSubstring("final validation accuracy") && ContainsSubstring("50.00 %") &&
                                 ContainsSubstring("75.00 %") && !ContainsSubstring("25.00 %"));
  CHECK_THAT(to_svg(study), ContainsSubstring("seconds to 90.00 % validation accuracy") &&
                                ContainsSubstring("<title>validation accuracy after 4 epochs"));
}

TEST_CASE("the picture shows the times of those that reached the target, and the accuracies of all that have one") {
  AccuracyStudy study{.job = "a < b",
                      .devices = {},
                      .precision = {},
                      .target = 0.5,
                      .max_epochs = 4,
                      .reason = {},
                      .points = {missed(1), reached(2, 4.0)}};
  study.points.push_back(reached(4, 8.0));
  for (std::size_t i = 0; i < 3; ++i) study.points[i].accuracy = 0.25 * static_cast<double>(i);
  study.chosen = 2;
  const auto curve_of = [](const std::string& svg, std::size_t chart) {
    std::size_t at = 0;
    for (std::size_t i = 0; i <= chart; ++i) at = svg.find("<path class=\"curve s0\"", at + 1);
    return svg.substr(at, svg.find("/>", at) - at);
  };
  const std::string svg = to_svg(study);
  // From 1 to 4 learners there are 560 units to the right; from 0 to 8 seconds there are 280 upwards.
  CHECK_THAT(curve_of(svg, 0), ContainsSubstring("d=\"M360.0 180.0L640.0 40.0\""));
  CHECK_THAT(curve_of(svg, 1), ContainsSubstring("d=\"M80.0 320.0L360.0 180.0L640.0 40.0\""));
  CHECK_THAT(svg, ContainsSubstring("<title>a &lt; b: seconds to 50.00 % test accuracy") &&
                      ContainsSubstring("<title>test accuracy after 4 epochs") &&
                      ContainsSubstring("<path class=\"level\" d=\"M80 40.0H640\"/>"));
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = svg.find(part); at != std::string::npos; at = svg.find(part, at + 1)) ++found;
    return found;
  };
  CHECK(count("class=\"s0 marked\"") == 2);  // the chosen number, in both charts
  CHECK(count("<svg") == 3);
  CHECK(count("<style>") == 1);

  study.points = {missed(1)};
  study.chosen.reset();
  CHECK(to_svg(study).find("nan") == std::string::npos);
}

}  // namespace arbalest::jobs
