// Several GPUs on the stand-in of CUDA's libraries.
#include <nccl.h>

#include "tests/cuda/failing_gpus.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

TEST_CASE("two GPUs give the same bytes for any order of their streams", "[training]") {
  const RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
  cuda_stand_in::reset({.devices = 2});
  const Trained expected = train(options);
  for (std::uint64_t seed = 2; seed <= 20; ++seed) {
    cuda_stand_in::reset({.devices = 2}, seed);
    check_equal(train(options), expected);
    cuda_stand_in::require_clean();
  }
}

TEST_CASE("a GPU that fails ends the training of both, and the error names it", "[training]") {
  check_failing_gpus(options_on({"cuda:0", "cuda:1"}, {2, 2}), 200, [](const std::string& message) {
    // The first stream that the host checks reports the failure.
    CHECK_THAT(message,
               ContainsSubstring("cuda:") && (ContainsSubstring(", mini-batch ") || ContainsSubstring(" averaging")));
  });
}

TEST_CASE("an all-reduce that fails without a failed GPU ends the training", "[training]") {
  for (int after = 0; after < 40; after += 3) {
    INFO("after " << after);
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(after) + 1);
    {
      RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
      options.graphs = after % 2 == 0;
      TrainingRig rig(options);
      rig.run(1);
      cuda_stand_in::fail_all_reduce(ncclRemoteError, after);
      try {
        rig.run(40);
        FAIL("nobody notices");
      } catch (const engine::Error& error) {
        CHECK(error.kind() == engine::ErrorKind::kPeer);
        CHECK_THAT(error.what(), ContainsSubstring("cuda:0 averaging") &&
                                     ContainsSubstring("remote process exited or there was a network error"));
      }
    }
    CHECK_NOTHROW(cuda_stand_in::require_clean(false));
  }
  cuda_stand_in::reset();
}

}  // namespace arbalest::tests
