// Every synchronization scheme on a GPU. Runs on the stand-in of CUDA's libraries and on a real GPU.
#include "tests/cuda/async_run.h"
#include "tests/cuda/gpus.h"
#include "tests/cuda/switching.h"

namespace arbalest::tests {

TEST_CASE("every scheme trains and evaluates on a GPU like on the CPU, also in the middle of a round", "[training]") {
  const bool graphs = GENERATE(true, false);
  for (const sma::Options& scheme : short_schemes()) {
    INFO(name_of(scheme) << (graphs ? ", with graphs" : ""));
    use_gpus(1);
    const auto train_on = [&](const std::string& device) {
      RigOptions options = options_on({device}, {3});
      options.synchronization = scheme;
      options.graphs = graphs;
      return train(options);
    };
    check_close(train_on("cuda:0"), train_on("cpu"));
  }
}

TEST_CASE("an evaluation in the middle of a round does not change a GPU's training", "[training]") {
  for (const sma::Options& scheme : short_schemes()) {
    INFO(name_of(scheme));
    use_gpus(1);
    const auto train_on = [&](bool evaluates) {
      RigOptions options = options_on({"cuda:0"}, {3});
      options.synchronization = scheme;
      TrainingRig rig(options);
      for (int iteration = 0; iteration < 6; ++iteration) {
        rig.run(1);
        if (evaluates) rig.scheduler().evaluate(rig.test_ring());
      }
      return model_weights(rig);
    };
    CHECK(train_on(true) == train_on(false));
  }
}

TEST_CASE("switches between schemes train on a GPU like on the CPU", "[training]") {
  use_gpus(1);
  const auto train_on = [](const std::string& device) {
    return train_through(options_on({device}, {}), phases_on(1, 3));
  };
  check_close(train_on("cuda:0"), train_on("cpu"));
}

TEST_CASE("learners of a GPU push to a server, and the loss falls", "[training][async]") {
  for (const int push_every : {1, 3}) {
    for (const engine::Precision precision : {engine::Precision::kFloat32, engine::Precision::kBFloat16}) {
      CAPTURE(push_every, engine::to_string(precision));
      use_gpus(1);
      check_async_run({3}, push_every, precision);
    }
  }
}

}  // namespace arbalest::tests
