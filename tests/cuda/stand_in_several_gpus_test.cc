// Several GPUs on the stand-in of CUDA's libraries.
#include "tests/cuda/gpu_training.h"
#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests {

TEST_CASE("two GPUs give the same bytes in whatever order their streams run", "[training]") {
  const RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
  cuda_stand_in::reset({.devices = 2});
  const Trained expected = train(options);
  for (std::uint64_t seed = 2; seed <= 20; ++seed) {
    cuda_stand_in::reset({.devices = 2}, seed);
    check_equal(train(options), expected);
    cuda_stand_in::require_clean();
  }
}

}  // namespace arbalest::tests
