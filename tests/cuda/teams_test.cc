// Teams of learners (learners/team.h): several replicas on one stream of a GPU get the bytes that each gets on a stream
// of its own. Runs on the stand-in of CUDA's libraries and on a real GPU.
#include "learners/team.h"

#include <optional>

#include "dataflow/layers/branch_layers.h"
#include "dataflow/layers/images/local_response_norm.h"
#include "dataflow/layers/layer_norm.h"
#include "dataflow/layers/prelu.h"
#include "tests/cuda/gpus.h"
#include "tests/cuda/switching.h"
#include "tests/support/zoo_layers.h"

namespace arbalest::tests {

namespace {

// Schemes under which learners take their steps together.
std::vector<sma::Options> team_schemes() {
  std::vector<sma::Options> schemes = short_schemes();
  std::erase_if(schemes, [](const sma::Options& scheme) {
    const sma::SynchronizationMode mode = scheme.mode(4);
    return mode == sma::SynchronizationMode::kServer || mode == sma::SynchronizationMode::kShared;
  });
  return schemes;
}

Trained train_in_teams(RigOptions options, int team, int iterations) {
  use_gpus(1);
  options.team = team;
  return train(options, iterations);
}

void check_teams(const RigOptions& options, int iterations = 12) {
  const Trained alone = train_in_teams(options, 1, iterations);
  for (const int team : {2, 4}) {
    INFO("teams of " << team);
    check_equal(train_in_teams(options, team, iterations), alone);
  }
}

// The operators that the other networks here lack, of those that have no labels.
std::vector<dataflow::LayerDescription> branching_network() {
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 4;
  conv.window = {{3, 3}, {1, 1}, {1, 1}};
  dataflow::Pool2dLayer::Options pool;
  pool.kind = engine::PoolKind::kAverage;
  pool.window = {{2, 2}, {2, 2}};
  dataflow::DenseLayer::Options dense;
  dense.units = 3;
  return {{"left", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"prelu", {"left"}, std::make_shared<dataflow::PReluLayer>(dataflow::ParameterOptions{})},
          {"right", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"response",
           {"right"},
           std::make_shared<dataflow::LocalResponseNormLayer>(dataflow::LocalResponseNormLayer::Options{})},
          {"both", {"prelu", "response"}, std::make_shared<dataflow::ConcatLayer>()},
          {"pool", {"both"}, std::make_shared<dataflow::Pool2dLayer>(pool)},
          {"norm", {"pool"}, std::make_shared<dataflow::LayerNormLayer>(1e-5F)},
          {"logits", {"norm"}, std::make_shared<dataflow::DenseLayer>(dense)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()}};
}

// Rounds that end soon on the slow stand-in.
RigOptions few_steps(const std::string& model, const engine::Shape& image) {
  RigOptions options = options_on({"cuda:0"}, {4});
  options.image = image;
  options.classes = 10;
  options.batch = 2;
  options.examples = 24;
  options.layers = zoo_layers(model, dataflow::image_input(image, 10));
  return options;
}

}  // namespace

TEST_CASE("teams give the bytes of learners alone with every scheme", "[training][teams]") {
  const engine::Precision precision = GENERATE(engine::Precision::kFloat32, engine::Precision::kBFloat16);
  const bool is_normalized = GENERATE(false, true);
  for (const sma::Options& scheme : team_schemes()) {
    INFO(name_of(scheme) << " in " << engine::to_string(precision));
    RigOptions options = options_on({"cuda:0"}, {4});
    if (is_normalized) options.layers = normalized_network();
    options.synchronization = scheme;
    options.precision = precision;
    check_teams(options);
  }
}

TEST_CASE("teams give the bytes of learners alone with any input, optimizer and clipping", "[training][teams]") {
  RigOptions options = options_on({"cuda:0"}, {4});
  SECTION("data on the device") { options.input = RigInput::kResident; }
  SECTION("a clipped gradient") { options.clip_gradient_norm = 0.1F; }
  SECTION("AdamW") { options.rule = engine::AdamW{}; }
  SECTION("task by task, without graphs") { options.graphs = false; }
  SECTION("branches") { options.layers = branching_network(); }
  SECTION("branches in BF16") {
    options.layers = branching_network();
    options.precision = engine::Precision::kBFloat16;
  }
  check_teams(options);
}

TEST_CASE("teams give the bytes of learners alone with LeNet", "[training][teams]") {
  check_teams(few_steps("lenet {}", {1, 28, 28}));
}

TEST_CASE("teams give the bytes of learners alone with CIFAR-10 quick", "[training][teams]") {
  check_teams(few_steps("cifar_quick {}", {3, 32, 32}));
}

TEST_CASE("teams give the bytes of learners alone with ResNet-20", "[training][teams]") {
  check_teams(few_steps("resnet_cifar { depth: 20 }", {3, 32, 32}), 2);
}

// What the passes of a run find, in the order of a run.
struct Passes {
  std::optional<double> first_loss;  // as in training, before the first step
  Trained trained;
  double replicas = 0.0;  // loss of the learners' own weights
};

Passes run_passes(RigOptions options, int team) {
  use_gpus(1);
  options.team = team;
  TrainingRig rig(options);
  Passes found;
  found.first_loss = rig.scheduler().training_loss(rig.ring(), 2);
  found.trained.loss = rig.run(8).sums.loss();
  found.trained.evaluation = rig.scheduler().evaluate(rig.test_ring());
  found.replicas = rig.scheduler().evaluate_replicas(rig.test_ring());
  found.trained.weights = model_weights(rig);
  return found;
}

TEST_CASE("passes in teams find what learners alone find, even if no team divides the mini-batches",
          "[training][teams]") {
  RigOptions options = options_on({"cuda:0"}, {4});
  options.precision = GENERATE(engine::Precision::kFloat32, engine::Precision::kBFloat16);
  options.input = GENERATE(RigInput::kFloats, RigInput::kResident);
  options.examples = GENERATE(10, 87);  // 3 test mini-batches, fewer than learners, and 22
  options.evaluates_replicas = true;
  SECTION("dropout") {}
  SECTION("batch norm, whose statistics are measured") {
    options.layers = normalized_network();
    options.statistic_batches = 5;
  }
  CAPTURE(engine::to_string(options.precision), options.examples);
  const Passes alone = run_passes(options, 1);
  REQUIRE(alone.first_loss.has_value());
  CHECK(alone.trained.evaluation.examples == options.examples);
  for (const int team : {2, 4}) {
    CAPTURE(team);
    const Passes found = run_passes(options, team);
    CHECK(found.first_loss == alone.first_loss);
    check_equal(found.trained, alone.trained);
    CHECK(found.replicas == alone.replicas);
  }
}

TEST_CASE("a change of learners finds teams of the largest size that divides their number", "[training][teams]") {
  const auto trained = [](int team) {
    use_gpus(1);
    RigOptions options = options_on({"cuda:0"}, {1});
    options.most_learners = 6;
    options.team = team;
    Trained result;
    TrainingRig rig(options);
    learners::LearnerPool& pool = *rig.pools().front();
    for (const auto& [learners, size] : {std::pair{1, 1}, {4, 4}, {6, 3}, {5, 1}, {2, 2}}) {
      if (pool.count() != learners) {
        pool.prepare(learners);
        rig.scheduler().resize(std::vector{learners});
        pool.release_idle();
      }
      CHECK(pool.teams().front()->size() == static_cast<std::size_t>(team == 1 ? 1 : size));
      CHECK(pool.learners().size() == static_cast<std::size_t>(learners));
      result.loss += rig.run(3).sums.loss();
    }
    result.evaluation = rig.scheduler().evaluate(rig.test_ring());
    result.weights = model_weights(rig);
    return result;
  };
  check_equal(trained(4), trained(1));
}

TEST_CASE("a change of teams alone changes no byte with any scheme, within rounds and between them",
          "[training][teams]") {
  const bool uses_adam = GENERATE(false, true);
  const auto trained = [](const RigOptions& options, const std::vector<int>& teams) {
    use_gpus(1);
    Trained result;
    TrainingRig rig(options);
    learners::LearnerPool& pool = *rig.pools().front();
    for (const int team : teams) {
      if (pool.team_for(pool.count()) != team) {
        pool.prepare(pool.count(), team);
        pool.set_team(team);
        rig.scheduler().change_teams();
        pool.release_idle();
      }
      CHECK(pool.teams().front()->size() == static_cast<std::size_t>(team));
      result.loss += rig.run(3).sums.loss();
    }
    result.evaluation = rig.scheduler().evaluate(rig.test_ring());
    result.weights = model_weights(rig);
    return result;
  };
  for (const sma::Options& scheme : team_schemes()) {
    INFO(name_of(scheme));
    RigOptions options = options_on({"cuda:0"}, {4});
    options.layers = normalized_network();
    options.synchronization = scheme;
    if (uses_adam) options.rule = engine::AdamW{};
    check_equal(trained(options, {1, 4, 2, 1}), trained(options, {1, 1, 1, 1}));
  }
}

TEST_CASE("a state that teams saved goes on in teams of another size", "[training][teams]") {
  use_gpus(1);
  RigOptions options = options_on({"cuda:0"}, {4});
  std::vector<float> whole;
  scheduler::TrainingState state;
  {
    TrainingRig rig(options);
    rig.run(8);
    whole = model_weights(rig);
  }
  options.team = 4;
  {
    TrainingRig rig(options);
    rig.run(3);
    state = rig.scheduler().save();
  }
  options.team = 2;
  TrainingRig rig(options);
  rig.scheduler().restore(state, options.synchronization, options.learning_rate.with_learners, options.learners);
  rig.ring().restart(state.batches);
  rig.run(5);
  CHECK(model_weights(rig) == whole);
}

}  // namespace arbalest::tests
