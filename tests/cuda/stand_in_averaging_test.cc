// The maximum number of replicas of one launch on a GPU.
#include "engine/passes/averaging.h"
#include "tests/engine/replicas.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kLargest = 448;
constexpr std::int64_t kElements = 5;

}  // namespace

TEST_CASE("448 replicas of one GPU are summed in one launch, in the order of the tree") {
  const std::int64_t count = GENERATE(as<std::int64_t>{}, 32, 33, kLargest);
  const Replicas replicas = Replicas::random(count, kElements);
  Floats expected;
  for (std::size_t i = 0; i < kElements; ++i) {
    Floats differences;
    for (const Floats& replica : replicas.replicas) differences.push_back(replica[i] - replicas.central[i]);
    expected.push_back(tree_sum(differences));
  }
  Floats sum = replica_difference(replicas, 1);
  sum.resize(expected.size());
  CHECK(sum == expected);
}

TEST_CASE("more replicas than a kernel's maximum are refused") {
  const auto device = open_test_device();
  const engine::Buffer vectors = upload(*device, Floats(4 * kElements, 1.0F));
  auto* place = vectors.as<float>();
  const std::vector<const float*> replicas(kLargest + 1, place);
  const auto refusal =
      ContainsSubstring("449 learners on one GPU, but it averages at most 448; set fewer learners per device");
  CHECK_THROWS_WITH(run_averaging(*device, engine::ReplicaDifference{replicas, place, place + kElements, kElements}, 1),
                    refusal);
  CHECK_THROWS_WITH(
      run_averaging(
          *device,
          engine::LocalAveraging{replicas, place, place + kElements, place + 2 * kElements, {.step = 0.5F}, kElements},
          1),
      refusal);
  CHECK_THROWS_WITH(run_averaging(*device, engine::VectorMean{replicas, 0, place + kElements, kElements, 1.0F}, 1),
                    refusal);
}

}  // namespace arbalest::tests
