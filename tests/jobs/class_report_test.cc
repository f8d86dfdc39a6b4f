#include "report/class_report.h"

#include <limits>
#include <string>
#include <vector>

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

// Scores with this confusion matrix: a row for each label.
ClassScores scores_of(const std::vector<std::vector<int>>& matrix) {
  ClassScores scores(std::ssize(matrix));
  for (std::size_t label = 0; label < matrix.size(); ++label) {
    for (std::size_t predicted = 0; predicted < matrix.size(); ++predicted) {
      std::vector<float> logits(matrix.size());
      logits[predicted] = 1.0F;
      const std::int32_t labels[] = {static_cast<std::int32_t>(label)};
      for (int i = 0; i < matrix[label][predicted]; ++i) scores.add(logits, labels);
    }
  }
  return scores;
}

void check(const ClassScore& score, const ClassScore& expected) {
  CHECK(score.precision == Approx(expected.precision).epsilon(1e-14));
  CHECK(score.recall == Approx(expected.recall).epsilon(1e-14));
  CHECK(score.f1 == Approx(expected.f1).epsilon(1e-14));
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
}

// Expected: scikit-learn 1.9.1, classification_report(labels=range(n), output_dict=True, zero_division=0).
TEST_CASE("precision, recall, F1 and their means are those of scikit-learn") {
  const ClassScores three = scores_of({{13, 1, 1}, {2, 5, 0}, {0, 3, 4}});
  check(three.score(0), {0.8666666666666667, 0.8666666666666667, 0.8666666666666667});
  check(three.score(1), {0.5555555555555556, 0.7142857142857143, 0.625});
  check(three.score(2), {0.8, 0.5714285714285714, 0.6666666666666666});
  check(three.macro_mean(), {0.7407407407407408, 0.7174603174603176, 0.7194444444444444});
  check(three.weighted_mean(), {0.7754789272030652, 0.7586206896551724, 0.7600574712643677});

  // Class 1 is never predicted. Class 2 has no examples, and one prediction.
  const ClassScores sparse = scores_of({{7, 0, 0, 2}, {1, 0, 0, 0}, {0, 0, 0, 0}, {3, 0, 1, 12}});
  check(sparse.score(0), {0.6363636363636364, 0.7777777777777778, 0.7});
  check(sparse.score(1), {0.0, 0.0, 0.0});
  check(sparse.score(2), {0.0, 0.0, 0.0});
  check(sparse.score(3), {0.8571428571428571, 0.75, 0.8});
  check(sparse.macro_mean(), {0.37337662337662336, 0.3819444444444444, 0.375});
  check(sparse.weighted_mean(), {0.7477522477522478, 0.7307692307692307, 0.7346153846153847});

  check(some_scores().macro_mean(), {0.2222222222222222, 0.2222222222222222, 0.2222222222222222});
  check(some_scores().weighted_mean(), {0.5, 0.5, 0.5});
  check(ClassScores(2).weighted_mean(), {0.0, 0.0, 0.0});
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
  CHECK(class_report(some_scores(), {}) ==
        "class          examples  precision   recall       F1  most mistaken for\n"
        "0                     3    66.67 %  66.67 %  66.67 %              2 (1)\n"
        "1                     1     0.00 %   0.00 %   0.00 %              0 (1)\n"
        "2                     0     0.00 %   0.00 %   0.00 %\n"
        "macro mean            4    22.22 %  22.22 %  22.22 %\n"
        "weighted mean         4    50.00 %  50.00 %  50.00 %\n"
        "classes without examples: 1, never predicted: 1; their undefined scores count as 0, also in the means\n"
        "\n"
        "confusion matrix: examples by label (row) and predicted class (column)\n"
        "label  0  1  2\n"
        "    0  2  0  1\n"
        "    1  1  0  0\n"
        "    2  0  0  0\n");
  CHECK_THAT(class_report(ClassScores(21), {}), !ContainsSubstring("confusion"));
  const auto json = to_json(some_scores(), {});
  CHECK(json["confusion_matrix"].dump() == "[[2,0,1],[1,0,0],[0,0,0]]");
  CHECK(json["per_class"][0]["accuracy"] == 2.0 / 3.0);
  CHECK(json["per_class"][0]["name"].is_null());
  CHECK(json["per_class"][2]["accuracy"].is_null());
}

TEST_CASE("the report of classes has their names in both tables and in JSON") {
  const std::vector<std::string> names = {"cat", "dog", "young häre"};
  const ClassScores scores = scores_of({{13, 1, 1}, {2, 5, 0}, {0, 3, 4}});
  CHECK(class_report(scores, names) ==
        "class          name        examples  precision   recall       F1  most mistaken for\n"
        "0              cat               15    86.67 %  86.67 %  86.67 %            dog (1)\n"
        "1              dog                7    55.56 %  71.43 %  62.50 %            cat (2)\n"
        "2              young häre         7    80.00 %  57.14 %  66.67 %            dog (3)\n"
        "macro mean                       29    74.07 %  71.75 %  71.94 %\n"
        "weighted mean                    29    77.55 %  75.86 %  76.01 %\n"
        "\n"
        "confusion matrix: examples by label (row) and predicted class (column)\n"
        "label  name         0  1  2\n"
        "0      cat         13  1  1\n"
        "1      dog          2  5  0\n"
        "2      young häre   0  3  4\n");
  const auto json = to_json(scores, names);
  CHECK(json["per_class"][1].dump() ==
        R"({"class":1,"name":"dog","examples":7,"accuracy":0.7142857142857143,"precision":0.5555555555555556,)"
        R"("recall":0.7142857142857143,"f1":0.625})");
  CHECK(json["macro_mean"]["f1"] == Approx(0.7194444444444444).epsilon(1e-14));
  CHECK(json["weighted_mean"]["precision"] == Approx(0.7754789272030652).epsilon(1e-14));
}

}  // namespace arbalest::jobs
