// Teams of learners on several GPUs, which the stand-in of CUDA's libraries has.
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

}  // namespace arbalest::tests
