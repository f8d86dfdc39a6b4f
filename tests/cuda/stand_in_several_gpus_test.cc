// Several GPUs on the stand-in of CUDA's libraries.
#include <nccl.h>

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

// Without care, the peers of a failed GPU and the host would wait forever in the all-reduce. The stand-in reports that
// as a violation.
TEST_CASE("a GPU that fails ends the training of both, and the error names it", "[training]") {
  for (int after = 0; after < 200; after += 7) {
    const bool graphs = after % 2 == 0;
    INFO("after " << after << (graphs ? ", with graphs" : ""));
    cuda_stand_in::reset({.devices = 2}, static_cast<std::uint64_t>(after) + 1);
    std::string message;
    {
      RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
      options.graphs = graphs;
      TrainingRig rig(options);
      rig.run(1);
      cuda_stand_in::fail_execution(cudaErrorIllegalAddress, after);
      try {
        rig.run(20);
      } catch (const engine::Error& error) {
        CHECK(error.kind() == engine::ErrorKind::kDevice);
        message = error.what();
      }
    }
    // The first stream that the host checks reports the failure.
    CHECK_THAT(message,
               ContainsSubstring("cuda:") && (ContainsSubstring(", mini-batch ") || ContainsSubstring(" averaging")));
    CHECK_NOTHROW(cuda_stand_in::require_clean(false));
  }
  cuda_stand_in::reset();  // memory of a failed device cannot be freed
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
