#include "engine/passes/round_weights.h"

#include <cmath>
#include <limits>

#include "engine/elementwise/bfloat16.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {

TEST_CASE("weights round to the nearest number with ties to even, and infinities and NaN are kept") {
  struct Rounding {
    float weight;
    std::uint16_t bits;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Rounding cases[] = {{1.0F + 0x1p-8F, 0x3F80}, {1.0F + 0x3p-8F, 0x3F82}, {-1.0F - 0x1.1p-8F, 0xBF81},
                            {0x1.FFp+127F, 0x7F80},   {kInfinity, 0x7F80},      {-kInfinity, 0xFF80},
                            {std::nanf(""), 0x7FC0},  {0x1p-126F, 0x0080},      {-0.0F, 0x8000}};
  std::vector<float> weights;
  std::vector<std::uint16_t> expected;
  for (const auto& [weight, bits] : cases) {
    weights.push_back(weight);
    expected.push_back(bits);
  }
  const auto device = open_test_device();
  const engine::Buffer weights_there = upload(*device, weights);
  const engine::Buffer rounded_there = upload(*device, std::vector<std::uint16_t>(expected.size()));
  const auto stream = device->create_stream({"test"});
  stream->enqueue(engine::RoundWeights{weights_there.as<float>(), rounded_there.as<engine::BFloat16>(),
                                       static_cast<std::int64_t>(weights.size())},
                  "round");
  stream->record().synchronize();
  CHECK(download<std::uint16_t>(*device, rounded_there.data(), expected.size()) == expected);
}

TEST_CASE("rounding a flat vector covers exactly its elements") {
  const std::int64_t elements = GENERATE(1, 17, 70001);
  const int threads = GENERATE(1, 3);
  const auto device = open_test_device();
  std::vector<float> weights;
  std::vector<std::uint16_t> expected;
  for (const double value : random_values(elements, 7)) {
    weights.push_back(static_cast<float>(value));
    expected.push_back(engine::elementwise::to_bfloat16(weights.back()).bits);
  }
  expected.resize(expected.size() + 3, 0x4141);
  const engine::Buffer weights_there = upload(*device, weights);
  const engine::Buffer rounded_there = upload(*device, std::vector<std::uint16_t>(expected.size(), 0x4141));
  const auto stream = device->create_stream({"test", threads});
  stream->enqueue(engine::RoundWeights{weights_there.as<float>(), rounded_there.as<engine::BFloat16>(), elements},
                  "round");
  stream->record().synchronize();
  CHECK(download<std::uint16_t>(*device, rounded_there.data(), expected.size()) == expected);
}

}  // namespace arbalest::tests
