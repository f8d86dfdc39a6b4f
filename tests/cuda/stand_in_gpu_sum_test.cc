// The sum over GPUs that bench/all_reduce measures, on the stand-in of CUDA's libraries.
#include <numeric>
#include <string>
#include <vector>

#include "bench/all_reduce/gpu_sum.h"
#include "tests/cuda_stand_in/stand_in.h"
#include "tests/process/ranks.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

TEST_CASE("all_reduce_bench: ranks with a GPU each sum their vectors over NCCL", "[training]") {
  cuda_stand_in::reset({.devices = 2});
  std::vector<std::vector<float>> sums(2);
  on_each_rank(2, [&](engine::process::World& world) {
    bench::GpuSum sum(world);
    expect(sum.problem().empty(), "a GPU for each rank");
    for (const std::size_t elements : {std::size_t{5}, std::size_t{1000}}) {
      sum.prepare(elements);
      std::vector<float> values(elements);
      std::iota(values.begin(), values.end(), 1.0F + static_cast<float>(world.rank()));
      sum.stream().copy(sum.values(), values.data(), elements * sizeof(float), "own values");
      sum.run();
      sum.stream().copy(values.data(), sum.values(), elements * sizeof(float), "sums");
      sum.stream().record().synchronize();
      sums[static_cast<std::size_t>(world.rank())] = values;
    }
  });
  cuda_stand_in::require_clean();
  for (std::size_t i = 0; i < 1000; ++i) CHECK(sums[0][i] == static_cast<float>(2 * i + 3));
  CHECK(sums[0] == sums[1]);
}

TEST_CASE("all_reduce_bench: with fewer GPUs than ranks all ranks know why NCCL is not measured", "[training]") {
  cuda_stand_in::reset({.devices = 1});
  std::vector<std::string> problems(2);
  on_each_rank(2, [&](engine::process::World& world) {
    problems[static_cast<std::size_t>(world.rank())] = bench::GpuSum(world).problem();
  });
  cuda_stand_in::require_clean();
  CHECK_THAT(problems[0], ContainsSubstring("rank 1 on host here has none: 2 processes share 1 GPUs"));
  CHECK(problems[0] == problems[1]);
}

}  // namespace arbalest::tests
