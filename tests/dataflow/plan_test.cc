// Plans on the CPU device: whole-model gradients by central differences, arenas, parameter layouts, initial values.
#include "dataflow/memory/plan.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "dataflow/layers/activation.h"
#include "dataflow/layers/dense.h"
#include "dataflow/layers/dropout.h"
#include "dataflow/layers/flatten.h"
#include "dataflow/layers/images/conv2d.h"
#include "dataflow/layers/images/local_response_norm.h"
#include "dataflow/layers/images/pool2d.h"
#include "dataflow/layers/outputs/classification.h"
#include "dataflow/layers/outputs/softmax.h"
#include "engine/backends/devices.h"
#include "tests/support/catch.h"
#include "tests/support/zoo_layers.h"

namespace {

using namespace arbalest;
using namespace arbalest::dataflow;

std::shared_ptr<const Layer> dense(std::int64_t units) {
  DenseLayer::Options options;
  options.units = units;
  return std::make_shared<DenseLayer>(options);
}

// A graph with every kind of layer, smooth enough for central differences.
Graph every_layer() {
  Conv2dLayer::Options conv;
  conv.filters = 5;
  conv.window = {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}};
  const engine::Window halves{.kernel = {2, 2}, .stride = {2, 2}};
  const auto pool = [&](engine::PoolKind kind) {
    return std::make_shared<Pool2dLayer>(Pool2dLayer::Options{.kind = kind, .window = halves});
  };
  const auto activation = [](engine::ActivationKind kind) { return std::make_shared<ActivationLayer>(kind); };
  const std::vector<LayerDescription> layers{
      {"conv", {"image"}, std::make_shared<Conv2dLayer>(conv)},
      {"tanh", {"conv"}, activation(engine::ActivationKind::kTanh)},
      {"average", {"tanh"}, pool(engine::PoolKind::kAverage)},
      {"max", {"average"}, pool(engine::PoolKind::kMax)},
      {"flat", {"max"}, std::make_shared<FlattenLayer>()},
      {"hidden", {"flat"}, dense(7)},
      {"sigmoid", {"hidden"}, activation(engine::ActivationKind::kSigmoid)},
      {"drop", {"sigmoid"}, std::make_shared<DropoutLayer>(0.25F)},
      {"logits", {"drop"}, dense(3)},
      {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}};
  return Graph::build(dataflow::image_input({2, 8, 8}, 3), layers);
}

// Layers and options that every_layer() lacks.
Graph more_layers() {
  Conv2dLayer::Options grouped;
  grouped.filters = 8;
  grouped.window = {.kernel = {3, 3}, .stride = {2, 2}};
  grouped.padding_mode = PaddingMode::kSame;
  grouped.groups = 2;
  Conv2dLayer::Options depthwise;
  depthwise.filters = 8;
  depthwise.window = {.kernel = {2, 2}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {2, 2}};
  depthwise.groups = 8;
  const Pool2dLayer::Options ceil{.kind = engine::PoolKind::kAverage,
                                  .window = {.kernel = {3, 3}, .stride = {2, 2}},
                                  .ceil_mode = true,
                                  .count_padding = true};
  const auto activation = [](engine::ActivationKind kind) { return std::make_shared<ActivationLayer>(kind); };
  const std::vector<LayerDescription> layers{
      {"grouped", {"image"}, std::make_shared<Conv2dLayer>(grouped)},
      {"gelu", {"grouped"}, activation(engine::ActivationKind::kGelu)},
      {"norm", {"gelu"}, std::make_shared<LocalResponseNormLayer>(LocalResponseNormLayer::Options{.alpha = 0.5F})},
      {"depthwise", {"norm"}, std::make_shared<Conv2dLayer>(depthwise)},
      {"silu", {"depthwise"}, activation(engine::ActivationKind::kSilu)},
      {"average", {"silu"}, std::make_shared<Pool2dLayer>(ceil)},
      {"hidden", {"average"}, dense(7)},
      {"softmax", {"hidden"}, std::make_shared<SoftmaxLayer>()},
      {"logits", {"softmax"}, dense(3)},
      {"loss",
       {"logits", "label"},
       std::make_shared<SoftmaxCrossEntropyLayer>(SoftmaxCrossEntropyLayer::Options{.label_smoothing = 0.2F})}};
  return Graph::build(dataflow::image_input({2, 8, 8}, 3), layers);
}

// A plan with its buffers, run step by step.
class PlanRun {
 public:
  PlanRun(const Graph& graph, const PlanOptions& options)
      : device_(engine::open_device(engine::parse_device("cpu"))),
        plan_(graph, *device_, options),
        weights_(device_->allocate(vector_bytes())),
        gradient_(device_->allocate(vector_bytes())),
        arena_(device_->allocate(plan_.arena_bytes())),
        stream_(device_->create_stream({.name = "test", .threads = options.threads})) {
    plan_.parameters().initialize(*device_, 5, weights());
    step_.seed = 9;
    step_.task = 4;
    images_.resize(plan_.inputs()[0].layout.bytes() / sizeof(float));
    for (std::size_t i = 0; i < images_.size(); ++i) images_[i] = std::sin(0.7F * static_cast<float>(i));
    labels_.resize(plan_.inputs()[1].layout.bytes() / sizeof(std::int32_t));
    std::iota(labels_.begin(), labels_.end(), 0);
    for (std::int32_t& label : labels_) label %= 3;
  }

  engine::Device& device() { return *device_; }
  const Plan& plan() const { return plan_; }
  float* weights() { return weights_.as<float>(); }
  float* gradient() { return gradient_.as<float>(); }

  // Returns the mean loss; computes the gradient if `backward`.
  double run(bool backward) {
    std::memcpy(plan_.input<float>("image", arena_.as<std::byte>()), images_.data(), images_.size() * sizeof(float));
    std::memcpy(plan_.input<std::int32_t>("label", arena_.as<std::byte>()), labels_.data(),
                labels_.size() * sizeof(std::int32_t));
    const PlanBuffers buffers{weights(), gradient(), arena_.as<std::byte>(), &step_, &result_};
    plan_.forward(*stream_, buffers);
    if (backward) plan_.backward(*stream_, buffers);
    stream_->record().synchronize();
    return static_cast<double>(result_.sums[engine::kLossSum]) / static_cast<double>(labels_.size());
  }

 private:
  std::size_t vector_bytes() const { return static_cast<std::size_t>(plan_.parameters().elements()) * sizeof(float); }

  std::unique_ptr<engine::Device> device_;
  Plan plan_;
  engine::Buffer weights_;
  engine::Buffer gradient_;
  engine::Buffer arena_;
  std::unique_ptr<engine::Stream> stream_;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
  engine::StepParameters step_;
  engine::StepResult result_;
};

}  // namespace

TEST_CASE("the gradient of a whole model agrees with central differences") {
  const bool more = GENERATE(false, true);
  for (const int threads : {1, 2}) {
    PlanRun run(more ? more_layers() : every_layer(), {.batch = 6, .threads = threads});
    run.run(true);
    const std::vector<NamedTensor> gradient = run.plan().parameters().to_canonical(run.device(), run.gradient());
    std::vector<NamedTensor> weights = run.plan().parameters().to_canonical(run.device(), run.weights());
    for (std::size_t t = 0; t < weights.size(); ++t) {
      double difference = 0.0;
      double norm = 0.0;
      for (std::size_t i = 0; i < weights[t].values.size(); i += 1 + weights[t].values.size() / 40) {
        constexpr float kStep = 2e-3F;
        float& weight = weights[t].values[i];
        const float kept = weight;
        const auto loss_at = [&](float value) {
          weight = value;
          run.plan().parameters().from_canonical(run.device(), weights, run.weights());
          return run.run(false);
        };
        const double numeric = (loss_at(kept + kStep) - loss_at(kept - kStep)) / (2.0 * kStep);
        weight = kept;
        const auto analytic = static_cast<double>(gradient[t].values[i]);
        difference += (numeric - analytic) * (numeric - analytic);
        norm += analytic * analytic;
      }
      CAPTURE(weights[t].name, threads);
      CHECK(std::sqrt(difference) < 0.02 * std::sqrt(norm) + 1e-5);
    }
  }
}

TEST_CASE("an inference plan reads the training plan's parameters and needs a smaller arena") {
  const Graph graph = Graph::build(dataflow::image_input({1, 28, 28}, 10), tests::lenet());
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const Plan training(graph, *device, {.batch = 32});
  const Plan inference(graph, *device,
                       {.batch = 32, .mode = engine::OperatorMode::kInference, .parameters = &training.parameters()});
  REQUIRE(inference.parameters().entries().size() == training.parameters().entries().size());
  for (std::size_t p = 0; p < training.parameters().entries().size(); ++p) {
    CHECK(inference.parameters().entries()[p].native == training.parameters().entries()[p].native);
    CHECK(inference.parameters().entries()[p].offset == training.parameters().entries()[p].offset);
  }
  CHECK(inference.arena_bytes() < training.arena_bytes());
  CHECK(training.parameters().parameters() == 431'080);
  CHECK(training.parameters().elements() >= 431'080);
}

TEST_CASE("bytes_without_reuse counts a buffer for each layer's output and one for its gradient") {
  const auto bytes = [](const Graph& graph, std::int64_t batch, engine::OperatorMode mode) {
    const auto device = engine::open_device(engine::parse_device("cpu"));
    return Plan(graph, *device, {.batch = batch, .mode = mode}).bytes_without_reuse();
  };
  constexpr std::size_t kBatch = 6;
  const auto small =
      Graph::build(dataflow::image_input({1, 8, 8}, 3),
                   {{"flat", {"image"}, std::make_shared<FlattenLayer>()},
                    {"hidden", {"flat"}, dense(5)},
                    {"relu", {"hidden"}, std::make_shared<ActivationLayer>(engine::ActivationKind::kRelu)},
                    {"drop", {"relu"}, std::make_shared<DropoutLayer>(0.5F)},
                    {"logits", {"drop"}, dense(3)},
                    {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
  constexpr std::size_t kOutputs = 5 + 5 + 3;  // tensors after a parameter have gradients; hidden and relu share one
  CHECK(bytes(small, kBatch, engine::OperatorMode::kInference) == (64 + kOutputs) * kBatch * sizeof(float));
  CHECK(bytes(small, kBatch, engine::OperatorMode::kTraining) == (64 + 2 * kOutputs) * kBatch * sizeof(float));

  // arena_bytes() includes saved values, scratch memory and the device's layouts.
  const Graph graph = Graph::build(dataflow::image_input({1, 28, 28}, 10), tests::lenet());
  const auto device = engine::open_device(engine::parse_device("cpu"));
  const Plan plan(graph, *device, {.batch = 32});
  std::size_t expected = 0;
  for (const Graph::Node& node : plan.graph().nodes()) {
    if (node.layer->role() == LayerRole::kHidden) expected += 2 * plan.tensor_bytes(node.output);
  }
  CHECK(plan.bytes_without_reuse() == expected);
  CHECK(plan.arena_bytes() < expected);
}

TEST_CASE("weight decay skips the excluded kinds of parameters, whatever their decay multiplier") {
  const auto device = engine::open_device(engine::parse_device("cpu"));
  DenseLayer::Options hidden;
  hidden.units = 7;
  hidden.weight.decay_multiplier = 3.0F;
  hidden.bias.decay_multiplier = 2.0F;
  hidden.bias.learning_rate_multiplier = 4.0F;
  const Graph graph = Graph::build(dataflow::image_input({2, 8, 8}, 3),
                                   {{"hidden", {"image"}, std::make_shared<DenseLayer>(hidden)},
                                    {"logits", {"hidden"}, dense(3)},
                                    {"loss", {"logits", "label"}, std::make_shared<SoftmaxCrossEntropyLayer>()}});
  const auto multipliers = [&](std::vector<ParameterKind> without_decay) {
    std::vector<float> result;
    const Plan plan(graph, *device, {.batch = 4, .without_decay = std::move(without_decay)});
    std::int64_t end = 0;
    for (const engine::UpdateRange& range : plan.parameters().update_ranges()) {
      CHECK(range.begin == end);
      end = range.end;
      result.push_back(range.decay_multiplier);
      result.push_back(range.learning_rate_multiplier);
    }
    CHECK(end == plan.parameters().elements());
    return result;
  };
  CHECK(multipliers({}) == std::vector<float>{3, 1, 2, 4, 1, 1});
  CHECK(multipliers({ParameterKind::kBias}) == std::vector<float>{3, 1, 0, 4, 1, 1, 0, 1});
}

TEST_CASE("converting parameters to the device's layout and back is exact") {
  PlanRun run(Graph::build(dataflow::image_input({1, 28, 28}, 10), tests::lenet()), {.batch = 4});
  const ParameterLayout& layout = run.plan().parameters();
  std::vector<NamedTensor> tensors = layout.to_canonical(run.device(), run.weights());
  REQUIRE(tensors.size() == 8);
  CHECK(tensors[0].name == "conv1.weight");
  CHECK(tensors[0].shape == engine::Shape{20, 1, 5, 5});
  CHECK(tensors[4].shape == engine::Shape{500, 800});
  for (NamedTensor& tensor : tensors) {
    for (float& value : tensor.values) value = 2.0F * value + 1.0F;
  }
  layout.from_canonical(run.device(), tensors, run.weights());
  const std::vector<NamedTensor> again = layout.to_canonical(run.device(), run.weights());
  for (std::size_t t = 0; t < tensors.size(); ++t) CHECK(again[t].values == tensors[t].values);

  const auto fails_with = [&](const std::string& words) {
    CHECK_THROWS_WITH(layout.from_canonical(run.device(), tensors, run.weights()), ContainsSubstring(words));
  };
  tensors[0].shape = {20, 5, 5, 1};
  fails_with("'conv1.weight' is 20x5x5x1 in the file and 20x1x5x5 in the model");
  tensors[0].shape = {20, 1, 5, 5};
  tensors[1].name = "other";
  fails_with("'other' is no parameter");
  tensors.erase(tensors.begin() + 1);
  fails_with("'conv1.bias' is missing");
}

TEST_CASE("initial values have their distribution and depend on seed and parameter only") {
  std::vector<float> values(20000);
  const auto moments = [&](const Initializer& initializer, std::uint64_t seed) {
    initialize(initializer, {.in = 50, .out = 100}, seed, 3, values);
    double mean = 0.0;
    double square = 0.0;
    for (const float value : values) {
      mean += static_cast<double>(value) / static_cast<double>(values.size());
      square += static_cast<double>(value) * static_cast<double>(value) / static_cast<double>(values.size());
    }
    return std::pair(mean, std::sqrt(square - mean * mean));
  };
  using Kind = Initializer::Kind;
  const auto check = [&](const Initializer& initializer, double mean, double deviation) {
    const auto [m, d] = moments(initializer, 1);
    CHECK(m == Approx(mean).margin(0.02 * deviation + 1e-12));
    CHECK(d == Approx(deviation).epsilon(0.02).margin(1e-6));
  };
  check({.kind = Kind::kConstant, .value = 0.25F}, 0.25, 0.0);
  check({.kind = Kind::kUniform, .low = -1.0F, .high = 3.0F}, 1.0, 4.0 / std::sqrt(12.0));
  check({.kind = Kind::kGaussian, .mean = 2.0F, .stddev = 0.5F}, 2.0, 0.5);
  check({.kind = Kind::kXavier}, 0.0, std::sqrt(2.0 / 150.0));
  check({.kind = Kind::kHe}, 0.0, std::sqrt(2.0 / 50.0));

  moments({.kind = Kind::kHe}, 1);
  const std::vector<float> first = values;
  moments({.kind = Kind::kHe}, 1);
  CHECK(values == first);
  moments({.kind = Kind::kHe}, 2);
  CHECK(values != first);
}
