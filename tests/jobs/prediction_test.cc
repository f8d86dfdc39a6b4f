// Predictions from logits, and their lines of text.
#include "predict/prediction.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "predict/latency.h"
#include "predict/prediction_text.h"
#include "tests/support/catch.h"

namespace arbalest::jobs {

namespace {

using Choices = std::vector<Prediction::Choice>;

ModelDescription pets() {
  ModelDescription description;
  description.job = "pets";
  description.shape = {3, 8, 8};
  description.outputs = 3;
  description.class_names = {"cat, tom", "dog \"rex\"", "été"};
  return description;
}

ModelDescription films() {
  ModelDescription description;
  description.input = ModelDescription::Input::kIds;
  description.shape = {2};
  description.ids = {5, 6};
  return description;
}

Prediction failed(const std::string& error) {
  Prediction prediction;
  prediction.error = error;
  return prediction;
}

}  // namespace

TEST_CASE("the most probable classes come first, and the lower number of equal ones") {
  const std::vector<float> logits = {std::log(1.0F), std::log(5.0F), std::log(2.0F), std::log(2.0F)};
  const Choices top = classify(logits, 3).top;
  REQUIRE(top.size() == 3);
  CHECK(top[0].output == 1);
  CHECK(top[0].probability == Approx(0.5));
  CHECK(top[1].output == 2);
  CHECK(top[2].output == 3);
  CHECK(top[1].probability == Approx(0.2));
  CHECK(classify(logits, 9).top.size() == 4);
}

TEST_CASE("large logits do not overflow, and those that are not finite are an error") {
  const Choices top = classify(std::vector<float>{-3e38F, 3e38F, 3e38F}, 3).top;
  CHECK(top == Choices{{1, 0.5F}, {2, 0.5F}, {0, 0.0F}});
  for (const float wrong : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const Prediction prediction = classify(std::vector<float>{0.0F, wrong}, 1);
    CHECK(prediction.top.empty());
    CHECK_THAT(prediction.error, ContainsSubstring("not a finite number"));
    CHECK_FALSE(score(wrong).score.has_value());
    CHECK_FALSE(score(wrong).error.empty());
  }
  CHECK(score(3.5F).score == 3.5F);
}

TEST_CASE("a prediction as a line of JSON") {
  const ModelDescription description = pets();
  const PredictionText text(description, PredictionFormat::kJsonl, 2, /*has_files=*/true);
  CHECK(text.header().empty());
  Prediction prediction;
  prediction.top = {{1, 0.75F}, {2, 0.1F}};
  CHECK(text.line("a\"b\n.png", prediction) ==
        "{\"file\": \"a\\\"b\\n.png\", \"top\": [{\"label\": \"dog \\\"rex\\\"\", \"output\": 1, \"probability\": "
        "0.75}, {\"label\": \"été\", \"output\": 2, \"probability\": 0.1}]}\n");
  CHECK(nlohmann::json::parse(text.line("a.png", prediction))["top"][0]["label"] == "dog \"rex\"");
  CHECK(text.line("x\xff.png", failed("is empty")) == "{\"file\": \"x\xEF\xBF\xBD.png\", \"error\": \"is empty\"}\n");
  const PredictionText numbered(description, PredictionFormat::kJsonl, 2, /*has_files=*/false);
  CHECK(numbered.line("7", failed("no")) == "{\"index\": 7, \"error\": \"no\"}\n");
  const ModelDescription ids = films();
  CHECK(PredictionText(ids, PredictionFormat::kJsonl, 5, false).line("7", score(3.25F)) ==
        "{\"index\": 7, \"score\": 3.25}\n");
}

TEST_CASE("predictions as rows of CSV and as text") {
  const ModelDescription description = pets();
  const PredictionText csv(description, PredictionFormat::kCsv, 5, /*has_files=*/true);
  CHECK(csv.header() == "file,label_1,probability_1,label_2,probability_2,label_3,probability_3,error\n");
  Prediction prediction;
  prediction.top = {{0, 0.5F}, {1, 0.25F}, {2, 0.25F}};
  CHECK(csv.line("a,b.png", prediction) == "\"a,b.png\",\"cat, tom\",0.5,\"dog \"\"rex\"\"\",0.25,été,0.25,\n");
  CHECK(csv.line("a.png", failed("is \"empty\"")) == "a.png,,,,,,,\"is \"\"empty\"\"\"\n");
  const ModelDescription ids = films();
  const PredictionText scores(ids, PredictionFormat::kCsv, 5, /*has_files=*/false);
  CHECK(scores.header() == "index,score,error\n");
  CHECK(scores.line("3", score(-1.5F)) == "3,-1.5,\n");
  CHECK(scores.line("3", failed("no")) == "3,,no\n");
  const PredictionText text(description, PredictionFormat::kText, 5, /*has_files=*/true);
  CHECK(text.line("a\nb.png", prediction) == "a?b.png: cat, tom 0.5000, dog \"rex\" 0.2500, été 0.2500\n");
  CHECK(text.line("a.png", failed("is\nempty")) == "a.png: error: is?empty\n");
}

TEST_CASE("percentiles by nearest rank") {
  std::vector<double> hundred;
  for (int i = 1; i <= 100; ++i) hundred.push_back(i);
  CHECK(percentile(hundred, 0.50) == 50.0);
  CHECK(percentile(hundred, 0.99) == 99.0);
  CHECK(percentile(hundred, 1.0) == 100.0);
  CHECK(percentile(std::vector<double>{4.0}, 0.01) == 4.0);
  CHECK(percentile(std::vector<double>{1.0, 2.0, 3.0}, 0.5) == 2.0);
}

}  // namespace arbalest::jobs
