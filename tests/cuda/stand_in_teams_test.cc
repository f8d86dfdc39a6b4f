// Teams of learners on several GPUs, which the stand-in of CUDA's libraries has.
#include "tests/cuda/byte_exact_nets.h"
#include "tests/cuda/switching.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests {

TEST_CASE("teams of two GPUs give the bytes of learners alone, for any order of their streams", "[training]") {
  const auto train_in = [](int team, std::uint64_t seed) {
    cuda_stand_in::reset({.devices = 2}, seed);
    RigOptions options = options_on({"cuda:0", "cuda:1"}, {4, 4});
    options.team = team;
    const Trained trained = train(options);
    cuda_stand_in::require_clean();
    return trained;
  };
  const Trained alone = train_in(1, 1);
  for (std::uint64_t seed = 2; seed <= 5; ++seed) check_equal(train_in(4, seed), alone);
}

TEST_CASE("GPUs with teams of unlike sizes evaluate to the bytes of learners alone", "[training]") {
  const auto train_in = [](int team) {
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(team));
    RigOptions options = options_on({"cuda:0", "cuda:1"}, {4, 3});
    options.team = team;
    options.examples = 87;  // 22 test mini-batches: three turns of all learners, and one
    TrainingRig rig(options);
    CHECK(rig.pools().front()->teams().front()->size() == static_cast<std::size_t>(team));
    Trained trained;
    trained.loss = rig.run(4).sums.loss();
    trained.evaluation = rig.scheduler().evaluate(rig.test_ring());
    trained.weights = model_weights(rig);
    CHECK(trained.evaluation.examples == 87);
    return trained;
  };
  const Trained alone = train_in(1);
  for (const int team : {2, 4}) check_equal(train_in(team), alone);
}

TEST_CASE("the networks whose bytes are recorded call no library", "[training]") {
  for (const ByteExactNet& net : kByteExactNets) {
    CAPTURE(net.model);
    cuda_stand_in::reset();
    TrainingRig rig(rig_of(net));
    rig.run(1);
    for (const char* computes : {"cublasGemmEx", "cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                 "cudnnConvolutionBackwardFilter"}) {
      CAPTURE(computes);
      CHECK(cuda_stand_in::calls(computes) == 0);
    }
  }
}

}  // namespace arbalest::tests
