// The copies of several GPUs are compared while they train.
#include <bit>

#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/device_memory.h"
#include "tests/support/schemes.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

TEST_CASE("equal copies of two and three GPUs pass under every scheme, for any order of their streams",
          "[training][comparison]") {
  for (const int gpus : {2, 3}) {
    for (const sma::Options& scheme : short_schemes()) {
      INFO(gpus << " GPUs, " << name_of(scheme));
      std::vector<std::string> devices;
      for (int gpu = 0; gpu < gpus; ++gpu) devices.push_back("cuda:" + std::to_string(gpu));
      RigOptions options = options_on(devices, std::vector<int>(devices.size(), 1));
      options.synchronization = scheme;
      cuda_stand_in::reset({.devices = gpus});
      const Trained expected = train(options);
      options.compare_rounds = 1;
      for (std::uint64_t seed = 2; seed <= 4; ++seed) {
        cuda_stand_in::reset({.devices = gpus}, seed);
        check_equal(train(options), expected);
        cuda_stand_in::require_clean();
      }
    }
  }
}

TEST_CASE("a GPU whose copy has a wrong bit ends the training of all, and the error names it",
          "[training][comparison]") {
  cuda_stand_in::reset({.devices = 3});
  {
    RigOptions options = options_on({"cuda:0", "cuda:1", "cuda:2"}, {1, 1, 1});
    options.synchronization = short_schemes()[2];
    REQUIRE(options.synchronization.scheme == sma::Scheme::kSSgd);
    options.compare_rounds = 2;
    TrainingRig rig(options);
    rig.run(4);
    engine::Device& device = rig.pools()[2]->device();
    float* weight = rig.pools()[2]->learners().front()->weights() + 3;
    const float value = download<float>(device, weight, 1).front();
    // The rounding of the next updates may absorb the lowest bit.
    const float wrong = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (1U << 20U));
    copy(device, weight, &wrong, sizeof(wrong));
    try {
      rig.run(4);
      FAIL("nobody notices");
    } catch (const engine::Error& error) {
      CHECK(error.kind() == engine::ErrorKind::kDevice);
      CHECK_THAT(error.what(), ContainsSubstring("after round 6 (mini-batch 18)") &&
                                   ContainsSubstring("the wrong one is on 'cuda:2' (hash ") &&
                                   ContainsSubstring("at or before mini-batch 12"));
    }
  }
  cuda_stand_in::require_clean();
}

}  // namespace arbalest::tests
