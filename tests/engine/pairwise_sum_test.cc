// Sums over replicas follow the pairwise tree over the replicas' numbers. Every device gives the same bits.
#include <algorithm>

#include "engine/elementwise/averaging.h"
#include "engine/passes/averaging.h"
#include "tests/engine/replicas.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::VectorMean;
using engine::elementwise::pairwise_sum;

template <int levels>
float sum_of(const Floats& values) {
  return pairwise_sum<levels>(static_cast<std::int32_t>(values.size()),
                              [&](std::int32_t j) { return values[static_cast<std::size_t>(j)]; });
}

// Returns element i of every vector.
Floats column(const std::vector<Floats>& vectors, std::size_t i) {
  Floats values;
  for (const Floats& vector : vectors) values.push_back(vector[i]);
  return values;
}

TEST_CASE("pairwise sums add in the order of their tree") {
  const Floats v = random_floats(7, 3);
  CHECK(sum_of<2>({}) == 0.0F);
  CHECK(sum_of<2>({v[0]}) == v[0]);
  CHECK(sum_of<2>({v[0], v[1], v[2]}) == (v[0] + v[1]) + v[2]);
  CHECK(sum_of<2>(v) == ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]));
  CHECK(tree_sum(v) == ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]));
  // Other orders give other results, because adding a single 1 to 2^24 has no effect.
  CHECK(sum_of<2>({0x1p24F, 0.0F, 1.0F, 1.0F}) == 0x1p24F + 2.0F);
  CHECK(sum_of<2>({0x1p24F, 1.0F, 1.0F, 0.0F, 1.0F}) == 0x1p24F);
}

TEST_CASE("pairwise sums of any number of values follow the tree") {
  int ordered = 0;
  for (std::int64_t count = 1; count <= 4 * 127; ++count) {
    const Floats values = random_floats(count, static_cast<unsigned>(count));
    const float expected = tree_sum(values);
    if (sum_of<7>(values) != expected) FAIL(count << " values");
    if (count <= 4 * 15 && sum_of<4>(values) != expected) FAIL(count << " values in four levels");
    float in_order = 0.0F;
    for (const float value : values) in_order += value;
    ordered += in_order == expected ? 1 : 0;
  }
  CHECK(ordered < 256);
}

TEST_CASE("a sum of negative zeros is negative zero") {
  for (const std::int64_t count : {1, 3, 5, 7}) {
    CHECK(std::signbit(sum_of<4>(Floats(static_cast<std::size_t>(count), -0.0F))));
  }
}

TEST_CASE("the mean of vectors has the bits of the tree's order") {
  constexpr std::int64_t kLength = 5003;
  const std::int64_t count = GENERATE(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33);
  const std::int64_t offset = GENERATE(0, 17);
  const int threads = GENERATE(1, 3);
  const Replicas vectors = Replicas::random(count, kLength);
  const auto device = open_test_device();
  const UploadedReplicas there(*device, vectors);
  const std::int64_t elements = kLength - offset - 1;
  const float factor = 1.0F / static_cast<float>(count);
  // Has one more element than must be written.
  const engine::Buffer mean = upload(*device, Floats(static_cast<std::size_t>(elements + 1), 99.0F));
  run_averaging(*device, VectorMean{there.addresses, offset, mean.as<float>(), elements, factor}, threads);
  Floats expected;
  for (std::int64_t i = 0; i < elements; ++i) {
    expected.push_back(tree_sum(column(vectors.replicas, static_cast<std::size_t>(offset + i))) * factor);
  }
  expected.push_back(99.0F);
  CHECK(download<float>(*device, mean.data(), expected.size()) == expected);
}

TEST_CASE("the replicas' difference has the bits of the tree's order, and the squared distances") {
  constexpr std::int64_t kElements = 5003;
  const std::int64_t count = GENERATE(1, 2, 3, 4, 5, 7, 8, 16, 33);
  const int threads = GENERATE(1, 3);
  const Replicas replicas = Replicas::random(count, kElements);
  Floats expected;
  double squares = 0.0;
  for (std::size_t i = 0; i < kElements; ++i) {
    Floats differences = column(replicas.replicas, i);
    for (float& difference : differences) {
      difference -= replicas.central[i];
      squares += static_cast<double>(difference) * static_cast<double>(difference);
    }
    expected.push_back(tree_sum(differences));
  }
  Floats sum = replica_difference(replicas, threads);
  const Floats tail(sum.end() - engine::kAveragingTail, sum.end());
  sum.resize(expected.size());
  CHECK(sum == expected);
  CHECK(tail[engine::kNonFiniteCount] == 0.0F);
  CHECK(static_cast<double>(tail[engine::kSquaredDistance]) == Approx(squares).epsilon(1e-5));
  CHECK(tail[engine::kSquaredSum] == 0.0F);
}

TEST_CASE("differences of two devices with four replicas each sum to the same bits as one device with eight") {
  const Replicas all = Replicas::random(8, 3000);
  Replicas left = all;
  Replicas right = all;
  left.replicas.resize(4);
  right.replicas.erase(right.replicas.begin(), right.replicas.begin() + 4);
  Floats sum = replica_difference(left, 1);
  const Floats addend = replica_difference(right, 1);
  std::transform(sum.begin(), sum.end(), addend.begin(), sum.begin(), std::plus<>());
  Floats expected = replica_difference(all, 1);
  sum.resize(3000);
  expected.resize(3000);
  CHECK(sum == expected);
}

}  // namespace
}  // namespace arbalest::tests
