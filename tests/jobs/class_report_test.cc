#include "jobs/report/class_report.h"

#include <limits>

#include "engine/ops/softmax_cross_entropy.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Scores of three classes. Class 0 is predicted right twice and mistaken for class 2 once. Class 1 is mistaken for
// class 0. Class 2 has no examples.
ClassScores some_scores() {
  ClassScores scores(3);
  const float logits[] = {2, 1, 0, 5, 4, 3, 0, 1, 2, 1, 0, 0, 9, 9, 9};
  const std::int32_t labels[] = {0, 0, 0, 1, engine::kNoLabel};
  scores.add(logits, labels);
  return scores;
}

}  // namespace

TEST_CASE("class scores count labels and predictions") {
  const ClassScores scores = some_scores();
  CHECK(scores.examples(0) == 3);
  CHECK(scores.count(0, 0) == 2);
  CHECK(scores.count(0, 2) == 1);
  CHECK(scores.count(1, 0) == 1);
  CHECK(scores.predictions(0) == 3);
  CHECK(scores.accuracy(0) == 2.0 / 3.0);
  CHECK(scores.accuracy(1) == 0.0);
  CHECK_FALSE(scores.accuracy(2).has_value());
  CHECK(scores.precision(0) == 2.0 / 3.0);
  CHECK(scores.precision(2) == 0.0);
  CHECK_FALSE(scores.precision(1).has_value());
}

TEST_CASE("the first of equal logits is predicted, and NaN never") {
  ClassScores scores(3);
  const float logits[] = {1, 1, 0, kNan, 0, -1, 0, kNan, 1};
  const std::int32_t labels[] = {1, 0, 2};
  scores.add(logits, labels);
  CHECK(scores.count(1, 0) == 1);
  CHECK(scores.count(0, 1) == 1);
  CHECK(scores.count(2, 2) == 1);
}

TEST_CASE("the report of classes shows what each is mistaken for, and the matrix") {
  CHECK(class_report(some_scores()) ==
        "class  examples  accuracy  precision  most mistaken for\n"
        "    0         3   66.66 %    66.66 %              2 (1)\n"
        "    1         1    0.00 %          -              0 (1)\n"
        "    2         0         -     0.00 %\n"
        "\n"
        "confusion matrix: examples by label (row) and predicted class (column)\n"
        "label  0  1  2\n"
        "    0  2  0  1\n"
        "    1  1  0  0\n"
        "    2  0  0  0\n");
  CHECK_THAT(class_report(ClassScores(21)), !ContainsSubstring("confusion"));
  const auto json = to_json(some_scores());
  CHECK(json["confusion_matrix"].dump() == "[[2,0,1],[1,0,0],[0,0,0]]");
  CHECK(json["per_class"][0]["accuracy"] == 2.0 / 3.0);
  CHECK(json["per_class"][2]["accuracy"].is_null());
}

}  // namespace arbalest::jobs
