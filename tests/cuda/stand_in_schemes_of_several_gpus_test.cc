// Every scheme on two GPUs, connected by the stand-in's NCCL, which reports a violation if the GPUs' calls differ in
// order or size.
#include "tests/cuda/switching.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests {

TEST_CASE("two GPUs give the same bytes with every scheme for any order of their streams", "[training]") {
  for (const sma::Options& scheme : short_schemes()) {
    INFO(name_of(scheme));
    RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 1});
    options.synchronization = scheme;
    cuda_stand_in::reset({.devices = 2});
    const Trained expected = train(options);
    cuda_stand_in::require_clean();
    for (std::uint64_t seed = 2; seed <= 5; ++seed) {
      cuda_stand_in::reset({.devices = 2}, seed);
      check_equal(train(options), expected);
      cuda_stand_in::require_clean();
    }
    RigOptions alone = options_on({"cpu"}, {3});
    alone.synchronization = scheme;
    check_close(expected, train(alone));
  }
}

TEST_CASE("two GPUs that switch schemes train like the CPU for any order of their streams", "[training]") {
  cuda_stand_in::reset({.devices = 2});
  const RigOptions options = options_on({"cuda:0", "cuda:1"}, {});
  const Trained expected = train_through(options, phases_on(2, 2));
  for (std::uint64_t seed = 2; seed <= 5; ++seed) {
    cuda_stand_in::reset({.devices = 2}, seed);
    check_equal(train_through(options, phases_on(2, 2)), expected);
    cuda_stand_in::require_clean();
  }
  std::vector<Phase> alone = phases_on(1, 4);  // the same total of learners in each phase
  for (std::size_t i = 2; i < alone.size(); ++i) alone[i].learners = {2};
  check_close(expected, train_through(options_on({"cpu"}, {}), alone));
}

TEST_CASE("a GPU that fails between parts of a gradient ends the training of both", "[training]") {
  RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
  options.synchronization = short_schemes()[2];
  for (int after = 0; after < 120; after += 11) {
    INFO("after " << after);
    options.graphs = after % 2 == 0;
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(after) + 1);
    {
      TrainingRig rig(options);
      rig.run(1);
      cuda_stand_in::fail_execution(cudaErrorIllegalAddress, after);
      CHECK_THROWS_WITH(rig.run(20), ContainsSubstring("cuda:"));
    }
    CHECK_NOTHROW(cuda_stand_in::require_clean(false));
  }
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
}

}  // namespace arbalest::tests
