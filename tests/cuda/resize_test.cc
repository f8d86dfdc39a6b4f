// The number of learners on a GPU changes from one round to the next. Runs on the stand-in of CUDA's libraries and on a
// real GPU.
#include "tests/cuda/resizing.h"

#include "tests/cuda/gpus.h"

namespace arbalest::tests {

TEST_CASE("growing and shrinking on a GPU trains like the CPU", "[training][resize]") {
  const bool graphs = GENERATE(true, false);
  use_gpus(1);
  const auto train_on = [&](const std::string& device) {
    RigOptions options = resizable_on(device);
    options.graphs = graphs;
    return train_through(options, kSizes);
  };
  check_close(train_on("cuda:0"), train_on("cpu"));
}

}  // namespace arbalest::tests
