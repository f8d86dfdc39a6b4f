// Tests which number of learners counts as the first to reach an accuracy.
#include "study/accuracy_report.h"

#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

constexpr double kNever = -1.0;

// A point with one run for each time; kNever: that run did not reach the target.
AccuracyPoint point_of(int learners, const std::vector<double>& seconds) {
  AccuracyPoint point{.learners = learners};
  for (const double each : seconds) {
    AccuracyRun& run = point.runs.emplace_back();
    run.seed = point.runs.size();
    if (each == kNever) continue;
    run.seconds = each;
    run.epochs = 3;
  }
  return point;
}
AccuracyPoint reached(int learners, double seconds) { return point_of(learners, {seconds}); }
AccuracyPoint missed(int learners) { return point_of(learners, {kNever}); }

// Returns the chosen number of learners, or 0 if there is none.
int chosen(const std::vector<AccuracyPoint>& points) {
  const AccuracyChoice choice = choose(points);
  return choice.chosen == nullptr ? 0 : choice.chosen->learners;
}

}  // namespace

TEST_CASE("the number of learners that reaches the target first is chosen, and the smallest one among near ties") {
  CHECK(chosen({}) == 0);
  CHECK(chosen({missed(1), missed(2)}) == 0);
  CHECK(chosen({reached(1, 10.0), reached(2, 6.0), reached(4, 5.0), missed(8)}) == 4);
  CHECK(chosen({missed(1), reached(2, 6.0), reached(4, 7.0)}) == 2);
  CHECK(chosen({reached(1, 10.0), reached(2, 5.14), reached(4, 5.0)}) == 2);  // 2.8 % later
  CHECK(chosen({reached(1, 10.0), reached(2, 5.16), reached(4, 5.0)}) == 4);  // 3.2 %
  // Near ties are measured from the fastest, so they do not chain.
  CHECK(chosen({reached(1, 5.25), reached(2, 5.1), reached(4, 5.0)}) == 2);
  CHECK(chosen({reached(1, 5.0), reached(2, 5.0)}) == 1);
}

TEST_CASE("over several seeds a number is chosen only if its range of times overlaps with no other") {
  const AccuracyPoint slow = point_of(1, {9.0, 10.0, 11.0});
  CHECK(chosen({slow, point_of(2, {5.0, 6.0, 7.0})}) == 2);
  CHECK(chosen({slow, point_of(2, {5.0, 6.0, 9.5})}) == 0);     // overlaps the fastest run of one learner
  CHECK(chosen({slow, point_of(2, {5.0, 6.0, kNever})}) == 0);  // its slowest run is infinitely long
  CHECK(chosen({slow, point_of(2, {5.0, kNever, kNever})}) == 0);
  CHECK(chosen({point_of(1, {kNever, kNever, kNever}), point_of(2, {5.0, 6.0, 7.0})}) == 2);

  const std::vector<AccuracyPoint> points = {slow, point_of(2, {5.0, 6.0, 9.5}), point_of(4, {20.0, 21.0, 22.0})};
  const AccuracyChoice choice = choose(points);
  REQUIRE(choice.first == &points[1]);
  REQUIRE(choice.indistinct.size() == 1);
  CHECK(choice.indistinct[0] == points.data());
}

TEST_CASE("a point of several seeds shows medians and ranges, and programs get every run") {
  AccuracyStudy study{.job = "job",
                      .devices = {"cpu:0"},
                      .precision = "FP32",
                      .seeds = {1, 2, 3},
                      .target = 0.9,
                      .max_epochs = 4,
                      .reason = "why",
                      .points = {point_of(1, {7.0, 5.0, kNever})}};
  CHECK(study.points[0].seconds() == 7.0);  // the median of 5, 7 and infinity
  const double accuracies[] = {0.91, 0.95, 0.87};
  for (std::size_t i = 0; i < 3; ++i) study.points[0].runs[i].accuracy = accuracies[i];
  CHECK_THAT(to_text(study), ContainsSubstring("7.0 (5.0 to never)") &&
                                 ContainsSubstring("91.00 % (87.00 % to 95.00 %)") &&
                                 ContainsSubstring("median over the seeds"));
  const auto point = to_json(study)["points"][0];
  CHECK(point["time_to_accuracy_seconds"] == 7.0);
  CHECK(point["test_accuracy"] == 0.91);
  REQUIRE(point["runs"].size() == 3);
  CHECK(point["runs"][1]["seed"] == 2);
  CHECK(point["runs"][1]["time_to_accuracy_seconds"] == 5.0);
  CHECK(point["runs"][2]["time_to_accuracy_seconds"].is_null());
  CHECK(to_json(study)["seeds"] == std::vector<int>{1, 2, 3});
}

TEST_CASE("a target that was not reached is null in JSON and a dash in text") {
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

TEST_CASE("a study of a job with a validation set shows validation accuracies") {
  AccuracyStudy study{.job = "job",
                      .devices = {"cpu:0"},
                      .precision = "FP32",
                      .target = 0.9,
                      .accuracy_set = EvaluationSet::kValidation,
                      .max_epochs = 4,
                      .reason = "why",
                      .points = {reached(1, 6.0)}};
  study.points[0].runs[0].accuracy = 0.25;
  study.points[0].runs[0].validation_accuracy = 0.5;
  study.points[0].runs[0].best_validation_accuracy = 0.75;
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

TEST_CASE("the chart shows the times that reached the target, and every known accuracy") {
  AccuracyStudy study{.job = "a < b",
                      .devices = {},
                      .precision = {},
                      .target = 0.5,
                      .max_epochs = 4,
                      .reason = {},
                      .points = {missed(1), reached(2, 4.0)}};
  study.points.push_back(reached(4, 8.0));
  for (std::size_t i = 0; i < 3; ++i) study.points[i].runs[0].accuracy = 0.25 * static_cast<double>(i);
  study.chosen = 2;
  const auto curve_of = [](const std::string& svg, std::size_t chart) {
    std::size_t at = 0;
    for (std::size_t i = 0; i <= chart; ++i) at = svg.find("<path class=\"curve s0\"", at + 1);
    return svg.substr(at, svg.find("/>", at) - at);
  };
  const std::string svg = to_svg(study);
  // The x axis has 560 units from 1 to 4 learners. The y axis has 280 units from 0 to 8 seconds.
  CHECK_THAT(curve_of(svg, 0), ContainsSubstring("d=\"M370.0 180.0L640.0 40.0\""));
  CHECK_THAT(curve_of(svg, 1), ContainsSubstring("d=\"M100.0 320.0L370.0 180.0L640.0 40.0\""));
  CHECK_THAT(svg, ContainsSubstring("<title>a &lt; b: seconds to 50.00 % test accuracy") &&
                      ContainsSubstring("<title>test accuracy after 4 epochs") &&
                      ContainsSubstring("<path class=\"level\" d=\"M100 40.0H640\""));
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
