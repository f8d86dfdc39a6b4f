#include "engine/passes/vector_variance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tests/engine/replicas.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using Results = std::array<float, engine::kVectorVarianceResults>;

// Runs the pass twice on one stream, so that the second finds what the first has left behind.
Results variance_of(const Replicas& vectors, int threads) {
  const auto device = open_test_device();
  const UploadedReplicas there(*device, vectors);
  const auto stream = device->create_stream({"test", threads});
  std::array<Results, 2> found{};
  for (Results& results : found) {
    const engine::Buffer result = upload(*device, Floats(engine::kVectorVarianceResults, 99.0F));
    stream->enqueue(engine::VectorVariance{there.addresses, vectors.elements, result.as<float>()}, "variance");
    stream->record().synchronize();
    const Floats values = download<float>(*device, result.data(), results.size());
    std::copy(values.begin(), values.end(), results.begin());
  }
  CHECK(std::isnan(found[0][0]) == std::isnan(found[1][0]));
  if (!std::isnan(found[0][0])) CHECK(found[0] == found[1]);
  return found[0];
}

// In double precision.
std::array<double, engine::kVectorVarianceResults> reference(const Replicas& vectors) {
  std::array<double, engine::kVectorVarianceResults> result{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(vectors.elements); ++i) {
    double sum = 0.0;
    for (const Floats& vector : vectors.replicas) {
      const auto value = static_cast<double>(vector[i]);
      sum += value;
      result[engine::kSumOfSquares] += value * value;
    }
    result[engine::kSquareOfSum] += sum * sum;
  }
  return result;
}

}  // namespace

TEST_CASE("the variance of vectors is exact on integers") {
  const std::int64_t count = GENERATE(1, 3, 8, 40);
  const std::int64_t elements = GENERATE(1, 4, 19, 5001, 300007);  // a GPU has more blocks than a block has threads
  const int threads = GENERATE(1, 3);
  const Replicas vectors(count, elements);
  const auto expected = reference(vectors);
  const Results found = variance_of(vectors, threads);
  CHECK(found[engine::kSumOfSquares] == static_cast<float>(expected[engine::kSumOfSquares]));
  CHECK(found[engine::kSquareOfSum] == static_cast<float>(expected[engine::kSquareOfSum]));
}

TEST_CASE("the variance of vectors has the same bits for any number of threads, close to double precision") {
  const Replicas vectors = Replicas::random(5, 100003);
  const auto expected = reference(vectors);
  const Results found = variance_of(vectors, 1);
  CHECK(variance_of(vectors, 2) == found);
  CHECK(variance_of(vectors, 3) == found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) <= 1e-6 * expected[i]);
  }
}

TEST_CASE("the variance of vectors with an element that is not finite is not finite") {
  const float bad = GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::infinity());
  Replicas vectors(3, 10001);
  vectors.replicas[1][GENERATE(0U, 5000U, 10000U)] = bad;
  for (const float result : variance_of(vectors, 3)) CHECK_FALSE(std::isfinite(result));
}

}  // namespace arbalest::tests
