// A build without NCCL: one GPU works, and for two GPUs the error says what is missing.
#include <algorithm>

#include "engine/backends/versions.h"
#include "engine/base/error.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

TEST_CASE("without NCCL, several learners train on one GPU") {
  check_close(train(options_on({"cuda:0"}, {2})), train(options_on({"cpu"}, {2})));
}

TEST_CASE("without NCCL, the error for a job with two GPUs says what to install") {
  cuda_stand_in::reset({.devices = 2});
  try {
    const TrainingRig rig(options_on({"cuda:0", "cuda:1"}, {1, 1}));
    FAIL("the GPUs were joined");
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kDevice);
    CHECK_THAT(error.what(), ContainsSubstring("no NCCL") && ContainsSubstring("the 2 GPUs of the job") &&
                                 ContainsSubstring("libnccl-dev") && ContainsSubstring("build Arbalest again"));
  }
}

TEST_CASE("without NCCL, no version of NCCL is reported") {
  const std::vector<engine::LibraryVersion> versions = engine::library_versions();
  const auto is_there = [&](const std::string& name) {
    return std::ranges::any_of(versions, [&](const auto& library) { return library.name == name; });
  };
  CHECK(is_there("cuDNN"));
  CHECK_FALSE(is_there("NCCL"));
}

}  // namespace arbalest::tests
