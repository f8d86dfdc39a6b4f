#include "engine/passes/averaging.h"

#include <limits>

#include "tests/engine/replicas.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::CentralStep;
using engine::CentralUpdate;
using engine::LocalAveraging;
using engine::ReplicaDifference;

struct Updated {
  Floats next;  // z^{t+1}
  Floats sum;
};

Updated update_central(const Floats& central, const Floats& previous, const Floats& sum, float step, float mu,
                       int threads) {
  const auto device = open_test_device();
  const engine::Buffer there = upload(*device, central);
  const engine::Buffer next = upload(*device, previous);
  const engine::Buffer added = upload(*device, sum);
  run_averaging(*device,
                CentralUpdate{there.as<float>(),
                              next.as<float>(),
                              added.as<float>(),
                              {.step = step, .momentum = mu},
                              static_cast<std::int64_t>(central.size())},
                threads);
  CHECK(download<float>(*device, there.data(), central.size()) == central);
  return {download<float>(*device, next.data(), previous.size()), download<float>(*device, added.data(), sum.size())};
}

TEST_CASE("the replicas' difference is exact on integers, including its tail") {
  const std::int64_t count = GENERATE(1, 2, 4, 8);
  const std::int64_t elements = GENERATE(1, 17, 5000, 140003);
  const int threads = GENERATE(1, 3);
  const Replicas replicas(count, elements);
  const Floats sum = replica_difference(replicas, threads);

  double squares = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) {
    double expected = 0.0;
    for (const Floats& replica : replicas.replicas) {
      const double difference = static_cast<double>(replica[i]) - static_cast<double>(replicas.central[i]);
      expected += difference;
      squares += difference * difference;
    }
    if (static_cast<double>(sum[i]) != expected) FAIL("element " << i << ": " << sum[i] << " != " << expected);
  }
  CHECK(sum[static_cast<std::size_t>(elements + engine::kNonFiniteCount)] == 0.0F);
  CHECK(sum[static_cast<std::size_t>(elements + engine::kSquaredDistance)] == static_cast<float>(squares));
}

TEST_CASE("the replicas' difference gives the same bits for any number of threads") {
  Replicas replicas(4, 100003);
  for (std::size_t j = 0; j < 4; ++j) {
    const Values values = random_values(replicas.elements, static_cast<unsigned>(j));
    std::transform(values.begin(), values.end(), replicas.replicas[j].begin(),
                   [](double value) { return static_cast<float>(value) * 1.1F; });
  }
  const Floats once = replica_difference(replicas, 1);
  CHECK(replica_difference(replicas, 2) == once);
  CHECK(replica_difference(replicas, 3) == once);
}

TEST_CASE("elements that are not finite are counted") {
  const float bad = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity());
  Replicas replicas(3, 10000);
  for (const std::size_t i : {0U, 15U, 4095U, 9999U}) replicas.replicas[i % 3][i] = bad;
  CHECK(replica_difference(replicas, 3)[10000 + engine::kNonFiniteCount] == 4.0F);
}

TEST_CASE("without replicas the difference is zero") {
  const Floats sum = replica_difference(Replicas(0, 100), 1);
  CHECK(sum == Floats(100 + engine::kAveragingTail, 0.0F));
}

TEST_CASE("the central model's update is exact on integers") {
  const std::int64_t elements = GENERATE(1, 33, 10007);
  const int threads = GENERATE(1, 3);
  const float mu = GENERATE(0.0F, 0.5F);
  const auto size = static_cast<std::size_t>(elements);
  Floats central(size);
  Floats previous(size);
  Floats sum(size + engine::kAveragingTail);
  Floats expected(size);
  for (std::size_t i = 0; i < size; ++i) {
    central[i] = static_cast<float>(i % 9);
    previous[i] = static_cast<float>(i % 7);
    sum[i] = static_cast<float>(i % 13) - 6.0F;
    expected[i] = central[i] + 0.25F * sum[i] + mu * (central[i] - previous[i]);
  }
  CHECK(update_central(central, previous, sum, 0.25F, mu, threads).next == expected);
}

// Compares one pass with two passes over the same replicas, from the same z and z-.
void check_one_pass_against_two(const Replicas& replicas, int threads) {
  Floats previous(replicas.central.size());
  for (std::size_t i = 0; i < previous.size(); ++i) previous[i] = static_cast<float>(i % 11) * 0.37F;
  const Updated two_passes =
      update_central(replicas.central, previous, replica_difference(replicas, threads), 0.3F, 0.7F, threads);

  const auto device = open_test_device();
  const UploadedReplicas there(*device, replicas);
  const engine::Buffer next = upload(*device, previous);
  const engine::Buffer tail = upload(*device, Floats(engine::kAveragingTail, 99.0F));
  run_averaging(*device,
                LocalAveraging{there.addresses,
                               there.central.as<float>(),
                               next.as<float>(),
                               tail.as<float>(),
                               {.step = 0.3F, .momentum = 0.7F},
                               replicas.elements},
                threads);
  CHECK(download<float>(*device, next.data(), previous.size()) == two_passes.next);
  CHECK(download<float>(*device, tail.data(), engine::kAveragingTail) ==
        Floats(two_passes.sum.end() - engine::kAveragingTail, two_passes.sum.end()));
}

TEST_CASE("averaging in one pass gives the same bits as in two passes") {
  const std::int64_t count = GENERATE(1, 5, 33);
  const std::int64_t elements = GENERATE(17, 140003);
  const int threads = GENERATE(1, 3);
  Replicas replicas(count, elements);
  SECTION("finite") { check_one_pass_against_two(replicas, threads); }
  SECTION("a replica is not finite") {
    replicas.replicas.back()[static_cast<std::size_t>(elements / 2)] = std::numeric_limits<float>::infinity();
    check_one_pass_against_two(replicas, threads);
  }
  SECTION("the next central model would not be finite") {
    replicas.central.front() = std::numeric_limits<float>::max();
    for (Floats& replica : replicas.replicas) replica.front() = std::numeric_limits<float>::max();
    check_one_pass_against_two(replicas, threads);
  }
}

TEST_CASE("statistics become the replicas' mean for any step and mu, and do not count in distances") {
  constexpr std::int64_t kReplicas = 4;  // makes the mean exact
  const std::int64_t elements = GENERATE(40, 140003);
  const std::int64_t statistics = GENERATE(1, 24);
  const int threads = GENERATE(1, 3);
  const Replicas replicas(kReplicas, elements);
  const Floats previous(replicas.central.size(), 1.0F);
  Floats expected;
  double squares = 0.0;
  double squared_sum = 0.0;
  for (std::size_t i = 0; i < previous.size(); ++i) {
    const float z = replicas.central[i];
    float sum = 0.0F;
    float square = 0.0F;
    for (const Floats& replica : replicas.replicas) {
      sum += replica[i] - z;
      square += (replica[i] - z) * (replica[i] - z);
    }
    const bool is_statistic = static_cast<std::int64_t>(i) >= elements - statistics;
    if (!is_statistic) {
      squares += static_cast<double>(square);
      squared_sum += static_cast<double>(sum * sum);
    }
    expected.push_back(is_statistic ? z + 0.25F * sum : z + 0.5F * sum + 0.5F * (z - 1.0F));
  }

  const auto device = open_test_device();
  const UploadedReplicas there(*device, replicas);
  const auto* central = there.central.as<const float>();
  const auto check = [&](const engine::Buffer& next, const float* tail) {
    CHECK(download<float>(*device, next.data(), previous.size()) == expected);
    CHECK(download<float>(*device, tail, engine::kAveragingTail) ==
          Floats{0.0F, static_cast<float>(squares), static_cast<float>(squared_sum)});
  };
  const CentralStep by{.step = 0.5F, .momentum = 0.5F, .mean_factor = 0.25F};
  const engine::Buffer one_pass = upload(*device, previous);
  const engine::Buffer tail = upload(*device, Floats(engine::kAveragingTail, 99.0F));
  run_averaging(
      *device,
      LocalAveraging{there.addresses, central, one_pass.as<float>(), tail.as<float>(), by, elements, statistics},
      threads);
  check(one_pass, tail.as<float>());

  const engine::Buffer two_passes = upload(*device, previous);
  const engine::Buffer sum =
      upload(*device, Floats(static_cast<std::size_t>(elements + engine::kAveragingTail), 99.0F));
  run_averaging(*device, ReplicaDifference{there.addresses, central, sum.as<float>(), elements, statistics}, threads);
  run_averaging(*device, CentralUpdate{central, two_passes.as<float>(), sum.as<float>(), by, elements, statistics},
                threads);
  check(two_passes, sum.as<float>() + elements);
}

TEST_CASE("a statistic that is not finite also keeps the central model") {
  const auto device = open_test_device();
  Replicas replicas(2, 40);
  replicas.replicas[1][39] = std::numeric_limits<float>::infinity();
  const UploadedReplicas there(*device, replicas);
  const engine::Buffer next = upload(*device, Floats(40, 1.0F));
  const engine::Buffer tail = upload(*device, Floats(engine::kAveragingTail, 99.0F));
  run_averaging(*device,
                LocalAveraging{there.addresses,
                               there.central.as<float>(),
                               next.as<float>(),
                               tail.as<float>(),
                               {.step = 0.5F, .mean_factor = 0.5F},
                               40,
                               8},
                1);
  CHECK(download<float>(*device, next.data(), 40) == replicas.central);
  CHECK(download<float>(*device, tail.data(), 1)[engine::kNonFiniteCount] == 1.0F);
}

TEST_CASE("the central model does not change if a replica is not finite") {
  const float count = GENERATE(1.0F, 3.0F, std::numeric_limits<float>::quiet_NaN());
  const Floats central{1, 2, 3};
  const Floats sum{std::numeric_limits<float>::quiet_NaN(), 1, 1, count, 0, 0};
  CHECK(update_central(central, {4, 5, 6}, sum, 0.5F, 0.5F, 1).next == central);
}

}  // namespace
}  // namespace arbalest::tests
