// Several GPUs in one process, connected by NCCL.
#include "tests/cuda/gpus.h"
#include "tests/support/small_training.h"

namespace arbalest::tests {

TEST_CASE("learners on two GPUs train like learners on the CPU", "[training][several_gpus]") {
  use_gpus(2);
  check_close(train(options_on({"cuda:0", "cuda:1"}, {2, 2})), train(options_on({"cpu"}, {4})));
}

TEST_CASE("two GPUs train to the same bytes from data on the devices and from a ring", "[training][several_gpus]") {
  use_gpus(2);
  RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
  options.input = RigInput::kResident;
  const Trained cached = train(options);
  options.input = RigInput::kBytes;
  check_equal(train(options), cached);
}

TEST_CASE("two GPUs give the same bytes in every run", "[training][several_gpus]") {
  use_gpus(2);
  const RigOptions options = options_on({"cuda:0", "cuda:1"}, {2, 2});
  const Trained expected = train(options);
  for (int run = 0; run < 3; ++run) check_equal(train(options), expected);
}

}  // namespace arbalest::tests
