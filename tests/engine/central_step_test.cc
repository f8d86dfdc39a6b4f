// Moves the central model, given the replicas' differences, by the heavy-ball rule and by Nesterov's.
#include <limits>

#include "engine/passes/averaging.h"
#include "tests/engine/replicas.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::CentralStep;
using engine::CentralUpdate;
using engine::LocalAveraging;
using engine::ReplicaDifference;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Center {
  Floats next;  // z^{t+1}
  Floats velocity;
  Floats tail;
};

// All elements of z^{t-1} are 1.
Center move_in_one_pass(const Replicas& of, CentralStep by, const Floats& velocity, std::int64_t statistics,
                        int threads) {
  const auto device = open_test_device();
  const UploadedReplicas there(*device, of);
  const auto size = static_cast<std::size_t>(of.elements);
  const engine::Buffer next = upload(*device, Floats(size, 1.0F));
  const engine::Buffer moved = upload(*device, velocity);
  const engine::Buffer tail = upload(*device, Floats(engine::kAveragingTail, 99.0F));
  by.velocity = velocity.empty() ? nullptr : moved.as<float>();
  run_averaging(*device,
                LocalAveraging{there.addresses, there.central.as<float>(), next.as<float>(), tail.as<float>(), by,
                               of.elements, statistics},
                threads);
  return {download<float>(*device, next.data(), size), download<float>(*device, moved.data(), velocity.size()),
          download<float>(*device, tail.data(), engine::kAveragingTail)};
}

Center move_in_two_passes(const Replicas& of, CentralStep by, const Floats& velocity, std::int64_t statistics,
                          int threads) {
  const auto device = open_test_device();
  const UploadedReplicas there(*device, of);
  const auto size = static_cast<std::size_t>(of.elements);
  const engine::Buffer next = upload(*device, Floats(size, 1.0F));
  const engine::Buffer moved = upload(*device, velocity);
  const engine::Buffer sum = upload(*device, Floats(size + engine::kAveragingTail, 99.0F));
  by.velocity = velocity.empty() ? nullptr : moved.as<float>();
  run_averaging(*device,
                ReplicaDifference{there.addresses, there.central.as<float>(), sum.as<float>(), of.elements, statistics},
                threads);
  run_averaging(
      *device, CentralUpdate{there.central.as<float>(), next.as<float>(), sum.as<float>(), by, of.elements, statistics},
      threads);
  return {download<float>(*device, next.data(), size), download<float>(*device, moved.data(), velocity.size()),
          download<float>(*device, sum.as<float>() + of.elements, engine::kAveragingTail)};
}

// Nesterov's rule in the form of torch.optim.SGD, for the gradient -S and a learning rate of 1. Running statistics
// follow the weights.
Center nesterov(const Replicas& of, const CentralStep& by, const Floats& velocity, std::int64_t statistics) {
  Center expected{{}, velocity, {}};
  for (std::size_t i = 0; i < of.central.size(); ++i) {
    Floats differences;
    for (const Floats& replica : of.replicas) differences.push_back(replica[i] - of.central[i]);
    const float sum = tree_sum(differences);
    if (static_cast<std::int64_t>(i) >= of.elements - statistics) {
      expected.next.push_back(of.central[i] + by.mean_factor * sum);
      continue;
    }
    float& v = expected.velocity[i];
    v = by.momentum * v + by.step * sum;
    expected.next.push_back(of.central[i] + by.step * sum + by.momentum * v);
  }
  return expected;
}

TEST_CASE("with a velocity the central model moves by Nesterov's rule") {
  const std::int64_t count = GENERATE(1, 3, 8, 33);
  const std::int64_t statistics = GENERATE(0, 40);
  const int threads = GENERATE(1, 3);
  const Replicas replicas = Replicas::random(count, 5003);
  const CentralStep by{
      .step = 0.7F / static_cast<float>(count), .momentum = 0.9F, .mean_factor = 1.0F / static_cast<float>(count)};
  Floats velocity = random_floats(5003, 77);
  // Statistics have no velocity.
  const auto first_statistic = velocity.end() - statistics;
  std::fill(first_statistic, velocity.end(), 55.0F);
  const Center expected = nesterov(replicas, by, velocity, statistics);
  const Center one_pass = move_in_one_pass(replicas, by, velocity, statistics, threads);
  CHECK(one_pass.next == expected.next);
  CHECK(one_pass.velocity == expected.velocity);
  const Center two_passes = move_in_two_passes(replicas, by, velocity, statistics, threads);
  CHECK(two_passes.next == expected.next);
  CHECK(two_passes.velocity == expected.velocity);
  CHECK(one_pass.tail == two_passes.tail);
  CHECK(one_pass.tail[engine::kNonFiniteCount] == 0.0F);
}

TEST_CASE("three rounds of Nesterov's rule follow the formula in double precision") {
  constexpr std::size_t kElements = 1003;
  const int threads = GENERATE(1, 3);
  const CentralStep by{.step = 0.25F, .momentum = 0.75F};
  Replicas replicas = Replicas::random(4, kElements);
  Floats velocity(kElements, 0.0F);
  Values z(replicas.central.begin(), replicas.central.end());
  Values v(kElements, 0.0);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < kElements; ++i) {
      double sum = 0.0;
      for (const Floats& replica : replicas.replicas) sum += static_cast<double>(replica[i]) - z[i];
      v[i] = 0.75 * v[i] + 0.25 * sum;
      z[i] += 0.25 * sum + 0.75 * v[i];
    }
    const Center moved = move_in_one_pass(replicas, by, velocity, 0, threads);
    replicas.central = moved.next;
    velocity = moved.velocity;
    CHECK(relative_error(replicas.central, z) < 5e-6);
    CHECK(relative_error(velocity, v) < 5e-6);
  }
}

TEST_CASE("Nesterov's rule keeps the old center if the new one would not be finite") {
  Replicas replicas = Replicas::random(2, 100);
  SECTION("a replica is not finite") { replicas.replicas[1][7] = kNaN; }
  SECTION("the next center is not") {
    replicas.central[7] = -std::numeric_limits<float>::max();
    replicas.replicas[0][7] = replicas.replicas[1][7] = replicas.central[7];
  }
  const CentralStep by{.step = 0.5F, .momentum = 0.5F};
  Floats velocity(100, 0.0F);
  velocity[7] = -std::numeric_limits<float>::max();
  const Center one_pass = move_in_one_pass(replicas, by, velocity, 0, 1);
  const Center two_passes = move_in_two_passes(replicas, by, velocity, 0, 1);
  CHECK(one_pass.next == replicas.central);
  CHECK(two_passes.next == replicas.central);
  CHECK(one_pass.tail[engine::kNonFiniteCount] == two_passes.tail[engine::kNonFiniteCount]);
}

TEST_CASE("the squared norm of S is exact on integers, in one and two passes, and excludes statistics") {
  const std::int64_t count = GENERATE(1, 4, 7, 33);
  const std::int64_t elements = GENERATE(17, 5000);
  const std::int64_t statistics = GENERATE(0, 5);
  const int threads = GENERATE(1, 3);
  const bool has_velocity = GENERATE(false, true);
  const Replicas replicas(count, elements);
  double squares = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements - statistics); ++i) {
    double sum = 0.0;
    for (const Floats& replica : replicas.replicas) sum += static_cast<double>(replica[i] - replicas.central[i]);
    squares += sum * sum;
  }
  REQUIRE(squares > 0.0);
  const CentralStep by{.step = 0.25F, .momentum = 0.5F, .mean_factor = 0.25F};
  const Floats velocity(has_velocity ? replicas.central.size() : 0, 1.0F);
  for (const auto move : {move_in_one_pass, move_in_two_passes}) {
    const Center center = move(replicas, by, velocity, statistics, threads);
    CHECK(center.tail[engine::kNonFiniteCount] == 0.0F);
    CHECK(center.tail[engine::kSquaredSum] == static_cast<float>(squares));
  }
}

TEST_CASE("the squared norm is computed from the sum over devices, and is 0 if S is not finite") {
  const auto device = open_test_device();
  const float bad = GENERATE(0.0F, 1.0F);  // the tail's count of non-finite elements
  const engine::Buffer central = upload(*device, Floats{1, 2, 3});
  const engine::Buffer next = upload(*device, Floats{1, 2, 3});
  // The sum of two devices' S and tails.
  const engine::Buffer sum = upload(*device, Floats{3, -4, bad == 0.0F ? 12 : kNaN, bad, 31, 0});
  run_averaging(*device, CentralUpdate{central.as<float>(), next.as<float>(), sum.as<float>(), {.step = 0.5F}, 3}, 1);
  CHECK(download<float>(*device, sum.as<float>() + 3, 3) ==
        (bad == 0.0F ? Floats{0, 31, 9 + 16 + 144} : Floats{1, 31, 0}));

  Replicas replicas(3, 3);
  if (bad != 0.0F) replicas.replicas[1][2] = -std::numeric_limits<float>::infinity();
  const Center center = move_in_one_pass(replicas, {.step = 0.5F}, {}, 0, 1);
  CHECK((center.tail[engine::kSquaredSum] == 0.0F) == (bad != 0.0F));
  CHECK(center.tail[engine::kNonFiniteCount] == bad);
}

}  // namespace
}  // namespace arbalest::tests
