// Models that are split over GPUs, on the stand-in of CUDA's libraries.
#include <string>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/host/topology.h"
#include "tests/cuda/failing_gpus.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/process/ranks.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

namespace {

using dataflow::DenseSplit;

// Its exchanges are of every kind: a split by columns, then by rows, by rows alone and by columns alone.
std::vector<dataflow::LayerDescription> split_network() {
  const auto relu = std::make_shared<dataflow::ActivationLayer>(engine::ActivationKind::kRelu);
  dataflow::Conv2dLayer::Options conv;
  conv.filters = 6;
  conv.window = {{3, 3}, {1, 1}};
  return {{"conv", {"image"}, std::make_shared<dataflow::Conv2dLayer>(conv)},
          {"relu0", {"conv"}, relu},
          {"dense1", {"relu0"}, dense_layer(12, DenseSplit::kColumns)},
          {"relu1", {"dense1"}, relu},
          {"drop1", {"relu1"}, std::make_shared<dataflow::DropoutLayer>(0.3F)},
          {"dense2", {"drop1"}, dense_layer(6, DenseSplit::kRows)},
          {"dense3", {"dense2"}, dense_layer(10, DenseSplit::kRows)},
          {"dense4", {"dense3"}, dense_layer(6, DenseSplit::kColumns)},
          {"logits", {"dense4"}, dense_layer(3)},
          {"loss", {"logits", "label"}, std::make_shared<dataflow::SoftmaxCrossEntropyLayer>()},
          {"accuracy", {"logits", "label"}, std::make_shared<dataflow::AccuracyLayer>()}};
}

RigOptions split_options(std::vector<std::string> devices) {
  RigOptions options = options_on(std::move(devices), {1, 1});
  options.layers = split_network();
  options.synchronization = sma::defaults_of(sma::Scheme::kSSgd);
  options.synchronization.bucket_bytes = 256;
  options.moving_average_epochs = 0.2;
  options.learning_rate.base = 0.05;
  return options;
}

const std::vector<std::string> kGpus = {"cuda:0", "cuda:1"};

}  // namespace

TEST_CASE("a model that is split over GPUs trains like one that is split over CPU devices", "[training][split]") {
  const std::string core = "cpu:" + std::to_string(engine::host::allowed_cores().front());
  const Trained cpu = train(split_options({core, core}));
  for (const bool graphs : {true, false}) {
    CAPTURE(graphs);
    cuda_stand_in::reset({.devices = 2});
    RigOptions options = split_options(kGpus);
    options.graphs = graphs;
    check_close(train(options), cpu);
    cuda_stand_in::require_clean();
  }
}

TEST_CASE("a model that is split over GPUs gives the same bytes for any order of their streams", "[training][split]") {
  cuda_stand_in::reset({.devices = 2});
  const RigOptions options = split_options(kGpus);
  const Trained expected = train(options);
  for (std::uint64_t seed = 2; seed <= 10; ++seed) {
    cuda_stand_in::reset({.devices = 2}, seed);
    check_equal(train(options), expected);
    cuda_stand_in::require_clean();
  }
}

TEST_CASE("a model that is split over the GPUs of two processes gets the bytes of one process", "[training][split]") {
  cuda_stand_in::reset({.devices = 2});
  const Trained expected = train(split_options(kGpus));
  cuda_stand_in::reset({.devices = 2}, 5);
  std::vector<Trained> trained(2);
  on_each_rank(2, [&](engine::process::World& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    RigOptions options = split_options({kGpus[rank]});
    options.learners = {1};
    options.world = &world;
    trained[rank] = train(options);
  });
  CHECK(trained[0].weights == expected.weights);
  CHECK(trained[1].weights == expected.weights);
  CHECK(trained[1].evaluation.loss() == expected.evaluation.loss());
  cuda_stand_in::require_clean();
}

TEST_CASE("a GPU that fails ends the training of a split model", "[training][split]") {
  check_failing_gpus(split_options(kGpus), 120,
                     [](const std::string& message) { CHECK_THAT(message, ContainsSubstring("cuda:")); });
}

}  // namespace arbalest::tests
