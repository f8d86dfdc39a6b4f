// Metrics: their names and sums in a graph, and the values that follow from the sums.
#include "dataflow/layers/metrics.h"

#include <cmath>
#include <type_traits>

#include "dataflow/fusion.h"
#include "dataflow/graph.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/outputs/squared_error.h"
#include "tests/support/catch.h"
#include "tests/support/metrics.h"

namespace {

using namespace arbalest::dataflow;
using arbalest::engine::kMaxSums;
using arbalest::engine::StepResult;
using arbalest::tests::classifier_metrics;
using arbalest::tests::ratings_metrics;

static_assert(std::is_trivially_copyable_v<MetricSums>);

std::vector<std::string> names_of(const Metrics& metrics) {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.push_back(metric.name);
  return names;
}

std::shared_ptr<const Layer> dense(std::int64_t units) {
  DenseLayer::Options options;
  options.units = units;
  return std::make_shared<DenseLayer>(options);
}

// Two heads of ten classes; the last loss is the main one.
Graph classifier(const std::vector<LayerDescription>& more = {}) {
  const auto loss = std::make_shared<SoftmaxCrossEntropyLayer>();
  std::vector<LayerDescription> layers = {{"first", {"image"}, dense(10)},
                                          {"auxiliary", {"first", "label"}, loss},
                                          {"logits", {"image"}, dense(10)},
                                          {"loss", {"logits", "label"}, loss}};
  layers.insert(layers.end(), more.begin(), more.end());
  return Graph::build(image_input({1, 4, 4}, 10), layers);
}

}  // namespace

TEST_CASE("metrics: a graph lists those of its main loss and of its accuracy layer, each with a sum") {
  const Graph plain = classifier();
  CHECK(names_of(plain.metrics()) == std::vector<std::string>{"loss", "accuracy", "top5_accuracy"});
  CHECK(score_of(plain.metrics()).name == "accuracy");
  const Graph chosen =
      classifier({{"right", {"logits", "label"}, std::make_shared<AccuracyLayer>(std::vector<std::int32_t>{2, 9})}});
  CHECK(names_of(chosen.metrics()) == std::vector<std::string>{"loss", "accuracy", "top2_accuracy", "top9_accuracy"});
  for (const Graph& graph : {plain, chosen, fuse(chosen)}) {
    REQUIRE(graph.metrics().size() >= 3);
    for (std::size_t i = 0; i < graph.metrics().size(); ++i) CHECK(graph.metrics()[i].sum == static_cast<int>(i));
  }
}

TEST_CASE("metrics: a top-k accuracy among as many classes tells nothing, and few are shown unasked") {
  CHECK(classifier_metrics(5)[2].is_trivial);
  CHECK_FALSE(classifier_metrics(6)[2].is_trivial);
  CHECK_FALSE(classifier_metrics(99)[2].is_brief);
  CHECK(classifier_metrics(100)[2].is_brief);
  CHECK(classifier_metrics(10, AccuracyLayer({3}))[2].is_brief);
  CHECK_FALSE(value_of(classifier_metrics(5)[2], {{1.0, 1.0, 4.0}}, 4).has_value());
}

TEST_CASE("metrics: training tells an RMSE only if the mean squared error alone is its loss") {
  const auto in_training = [](const std::vector<LayerDescription>& losses) {
    std::vector<LayerDescription> layers = {{"output", {"image"}, dense(1)}};
    layers.insert(layers.end(), losses.begin(), losses.end());
    InputDescription input = image_input({1, 4, 4}, 10);
    input.tensors.back() = ratings_input({2}).label();
    const Metrics metrics = Graph::build(input, layers).metrics();
    REQUIRE(names_of(metrics) == std::vector<std::string>{"loss", "rmse"});
    CHECK(metrics[0].in_training);
    return metrics[1].in_training;
  };
  const std::vector<std::string> inputs = {"output", "label"};
  const auto loss = [](float weight) { return std::make_shared<SquaredErrorLayer>(weight); };
  CHECK(in_training({{"loss", inputs, loss(1.0F)}}));
  CHECK_FALSE(in_training({{"loss", inputs, loss(0.25F)}}));
  CHECK_FALSE(in_training({{"first", inputs, loss(1.0F)}, {"loss", inputs, loss(1.0F)}}));
}

TEST_CASE("metrics: values are means, or roots of means, of the sums of steps") {
  MetricSums sums;
  StepResult step;
  step.sums[0] = 6.0F;
  step.sums[1] = 3.0F;
  sums.add(step);
  step.sums[0] = 12.0F;
  sums.add(step);
  CHECK(sums.loss() == 18.0);
  MetricSums twice = sums;
  twice.add(sums);
  CHECK(twice.values[1] == 12.0);
  CHECK(value_of(classifier_metrics()[0], sums, 8) == 2.25);
  CHECK(value_of(classifier_metrics()[1], sums, 8) == 0.75);
  CHECK(value_of(classifier_metrics()[0], sums, 0) == 0.0);
  const Metrics ratings = ratings_metrics();
  REQUIRE(names_of(ratings) == std::vector<std::string>{"loss", "rmse"});
  CHECK(score_of(ratings).name == "rmse");
  CHECK(value_of(ratings[1], sums, 8) == 1.5);
}
