// Tests what tiled kernels are made of: shuffles, tensor cores, asynchronous copies and dynamic shared memory. A GPU
// and the stand-in must agree with the same plain computation.
#include "tests/cuda/warp_kernels.h"

#include <bit>
#include <cmath>
#include <limits>

#include "engine/elementwise/bfloat16.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

constexpr std::size_t kLanes = 32;
constexpr std::size_t kRows = 16;
constexpr std::size_t kColumns = 8;

// Small whole numbers, whose products and sums are exact in any order.
Floats whole_numbers(std::size_t count, unsigned seed) {
  Floats values;
  for (const double value : random_values(static_cast<std::int64_t>(count), seed)) {
    values.push_back(static_cast<float>(std::floor(value * 100.0)));
  }
  return values;
}

// start + a b; a has `rows` rows.
Floats product(const Floats& a, const Floats& b, std::size_t rows, Floats start) {
  const std::size_t depth = a.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < kColumns; ++column) {
      for (std::size_t k = 0; k < depth; ++k) {
        start[row * kColumns + column] += a[row * depth + k] * b[k * kColumns + column];
      }
    }
  }
  return start;
}

std::vector<engine::BFloat16> to_bfloat16(const Floats& values) {
  std::vector<engine::BFloat16> numbers;
  for (const float value : values) numbers.push_back(engine::elementwise::to_bfloat16(value));
  return numbers;
}

}  // namespace

TEST_CASE("tensor cores multiply matrices of TF32 whose numbers are spread over a warp") {
  const auto device = open_test_device();
  const Floats a = whole_numbers(kRows * 8, 1);
  const Floats b = whole_numbers(8 * kColumns, 2);
  const Floats before = whole_numbers(kRows * kColumns, 3);
  const engine::Buffer d = upload(*device, before);
  multiply_tf32_on_gpu(upload(*device, a).as<float>(), upload(*device, b).as<float>(), d.as<float>());
  CHECK(download<float>(*device, d.data(), before.size()) == product(a, b, kRows, before));
}

TEST_CASE("tensor cores multiply matrices of BF16 whose numbers are spread over a warp") {
  const auto device = open_test_device();
  const Floats a = whole_numbers(kRows * 16, 1);
  const Floats b = whole_numbers(16 * kColumns, 2);
  const Floats before = whole_numbers(kRows * kColumns, 3);
  const engine::Buffer d = upload(*device, before);
  multiply_bf16_on_gpu(upload(*device, to_bfloat16(a)).as<engine::BFloat16>(),
                       upload(*device, to_bfloat16(b)).as<engine::BFloat16>(), d.as<float>());
  CHECK(download<float>(*device, d.data(), before.size()) == product(a, b, kRows, before));
}

TEST_CASE("rounding to TF32 goes to the nearest number, and from the middle away from zero") {
  struct Rounding {
    float value;
    float rounded;
  };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Rounding cases[] = {{1.0F, 1.0F},
                            {1.0F + 0x1p-11F, 1.0F + 0x1p-10F},  // the middle
                            {-1.0F - 0x1p-11F, -1.0F - 0x1p-10F},
                            {1.0F + 0x3p-11F, 1.0F + 0x2p-10F},  // the middle, above an odd number
                            {1.0F + 0x1.FFEp-12F, 1.0F},
                            {1.0F - 0x1p-13F, 1.0F},
                            {0x1.FFEp+127F, kInfinity},
                            {0x1.FFDFFEp+127F, 0x1.FFCp+127F},
                            {kInfinity, kInfinity},
                            {-kInfinity, -kInfinity},
                            {-0.0F, -0.0F}};
  Floats values(kLanes, std::nanf(""));
  std::size_t count = 0;
  for (const Rounding& each : cases) values[count++] = each.value;
  const auto device = open_test_device();
  const engine::Buffer there = upload(*device, std::vector<std::uint32_t>(kLanes));
  round_on_gpu(upload(*device, values).as<float>(), there.as<std::uint32_t>());
  const auto found = download<std::uint32_t>(*device, there.data(), kLanes);
  for (std::size_t i = 0; i < count; ++i) {
    INFO(values[i] << " becomes " << std::bit_cast<float>(found[i]));
    CHECK(found[i] == std::bit_cast<std::uint32_t>(cases[i].rounded));
  }
  CHECK(std::isnan(std::bit_cast<float>(found[count])));
}

TEST_CASE("lanes of a warp exchange values") {
  std::vector<int> values(kLanes);
  for (std::size_t lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<int>(1000 + lane * lane);
  std::vector<int> expected;
  // Adds what each lane gets: the value of lane source(lane).
  const auto expect = [&](auto source) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) expected.push_back(values[source(lane)]);
  };
  expect([](std::size_t) { return std::size_t{5}; });
  expect([](std::size_t lane) { return lane / 8 * 8 + (lane + 3) % 8; });
  expect([](std::size_t lane) { return lane + 3 < kLanes ? lane + 3 : lane; });
  expect([](std::size_t lane) { return lane % 8 + 3 < 8 ? lane + 3 : lane; });
  expect([](std::size_t lane) { return lane ^ 21U; });
  expect([](std::size_t lane) { return (lane ^ 9U) < lane / 8 * 8 + 8 ? lane ^ 9U : lane; });
  int squares = 0;
  for (const int value : values) squares += value * value;
  expected.insert(expected.end(), kLanes, squares);
  expect([](std::size_t lane) { return (lane + kLanes - 1) % kLanes; });

  const auto device = open_test_device();
  const engine::Buffer there = upload(*device, std::vector<int>(expected.size()));
  shuffle_on_gpu(upload(*device, values).as<int>(), there.as<int>());
  CHECK(download<int>(*device, there.data(), expected.size()) == expected);
}

TEST_CASE("a tiled product takes its tiles from dynamic shared memory of any size") {
  const int place = GENERATE(0, 100 << 10, 160 << 10);
  constexpr std::size_t kTiles = 5;
  const Floats a = whole_numbers(2 * kRows * 8 * kTiles, 1);
  const Floats b = whole_numbers(8 * kTiles * kColumns, 2);
  const auto device = open_test_device();
  const engine::Buffer there = upload(*device, Floats(2 * kRows * kColumns));
  multiply_tiles_on_gpu(upload(*device, a).as<float>(), upload(*device, b).as<float>(), there.as<float>(), kTiles,
                        place);
  CHECK(download<float>(*device, there.data(), 2 * kRows * kColumns) ==
        product(a, b, 2 * kRows, Floats(2 * kRows * kColumns)));
}

}  // namespace arbalest::tests
