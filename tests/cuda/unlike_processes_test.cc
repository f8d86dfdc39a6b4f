// Processes whose devices are of different kinds.
#include <filesystem>
#include <string>
#include <vector>

#include "engine/process/world.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "train/processes/shared_job.h"

namespace arbalest::tests {
namespace {

TEST_CASE("unlike processes: GPUs and CPU devices are refused by name") {
  cuda_stand_in::reset({.devices = 2});
  const TemporaryDirectory directory;
  const std::string path = (directory.path() / "job.txtpb").string();
  write_text(path, "model { zoo { mlp { hidden: [4] } } } data { digits {} } learning_rate { base: 0.1 }\n");
  for (const int with_gpu : {0, 1}) {
    const auto thrown = messages_of_ranks(2, [&](engine::process::World& world) {
      const std::vector<std::string> own = {world.rank() == with_gpu ? R"(devices=["cuda:0", "cuda:1"])"
                                                                     : R"(devices="cpu")"};
      jobs::load_shared_job(world, path, own);
    });
    for (const std::string& message : thrown) {
      CHECK_THAT(message,
                 ContainsSubstring(with_gpu == 0 ? "rank 0 trains on GPUs, and rank 1 on host here on CPU devices"
                                                 : "rank 0 trains on CPU devices, and rank 1 on host here on GPUs"));
    }
  }
}

}  // namespace
}  // namespace arbalest::tests
