// The hash of a flat vector is one function of its bits, on every device and for any number of threads.
#include "engine/passes/vector_hash.h"

#include <bit>
#include <cmath>
#include <utility>

#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

std::uint64_t hash_on(engine::Device& device, const Floats& values, int threads = 1) {
  const engine::Buffer there = upload(device, values);
  const engine::Buffer hash = upload(device, std::vector<std::uint64_t>{1});
  const auto stream = device.create_stream({"test", threads});
  stream->enqueue(
      engine::VectorHash{there.as<float>(), static_cast<std::int64_t>(values.size()), hash.as<std::uint64_t>()},
      "hash");
  stream->record().synchronize();
  return download<std::uint64_t>(device, hash.data(), 1).front();
}

Floats some_values(std::int64_t count) {
  Floats values;
  for (const double value : random_values(count, 5)) values.push_back(static_cast<float>(value));
  return values;
}

// SplitMix64's output function, with the constants of Steele, Lea and Flood (2014).
std::uint64_t split_mix(std::uint64_t state) {
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9U;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBU;
  return state ^ (state >> 31);
}

}  // namespace

TEST_CASE("the hash is the sum of a mix of each element's bits and index") {
  const auto device = open_test_device();
  // SplitMix64 with seed 0 begins with this number (the test vector of its authors).
  CHECK(hash_on(*device, {0.0F}) == 0xE220A8397B1DCDAFU);
  CHECK(hash_on(*device, {0.0F, 0.0F}) == 0xE220A8397B1DCDAFU + 0x6E789E6AA1B965F4U);
  for (const std::int64_t count : {1, 17, 4096, 70003}) {
    const Floats values = some_values(count);
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      expected += split_mix((i + 1) * 0x9E3779B97F4A7C15U + std::bit_cast<std::uint32_t>(values[i]));
    }
    for (const int threads : {1, 3}) CHECK(hash_on(*device, values, threads) == expected);
  }
}

TEST_CASE("every bit of a vector changes its hash, and so does the order of its elements") {
  const auto device = open_test_device();
  Floats values = some_values(21);
  values[3] = 0.0F;
  values[7] = std::nanf("1");
  const std::uint64_t expected = hash_on(*device, values);
  for (const std::size_t i : {0, 3, 7, 19, 20}) {
    for (int bit = 0; bit < 32; ++bit) {
      Floats changed = values;
      changed[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(changed[i]) ^ (1U << bit));
      if (hash_on(*device, changed) == expected) FAIL("bit " << bit << " of element " << i);
    }
  }
  std::swap(values[1], values[2]);
  CHECK(hash_on(*device, values) != expected);
}

}  // namespace arbalest::tests
