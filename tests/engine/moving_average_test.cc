#include "engine/passes/moving_average.h"

#include <limits>

#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

constexpr std::int64_t kBehind = 3;  // elements after the vector, which must not change
constexpr float kUntouched = 42.0F;

// Returns the average updated with `values`, followed by the elements after it.
std::vector<float> moved(std::vector<float> average, const std::vector<float>& values, float weight, int threads) {
  const auto elements = static_cast<std::int64_t>(average.size());
  average.resize(average.size() + kBehind, kUntouched);
  const auto device = open_test_device();
  const engine::Buffer values_there = upload(*device, values);
  const engine::Buffer average_there = upload(*device, average);
  const auto stream = device->create_stream({"test", threads});
  stream->enqueue(engine::MovingAverage{values_there.as<float>(), average_there.as<float>(), weight, elements},
                  "moving average");
  stream->record().synchronize();
  return download<float>(*device, average_there.data(), average.size());
}

}  // namespace

TEST_CASE("a moving average moves every element by the weight, and nothing after the vector") {
  const std::int64_t elements = GENERATE(1, 17, 70001);
  const int threads = GENERATE(1, 3);
  const std::vector<float> before = random_floats(elements, 7);
  const std::vector<float> values = random_floats(elements, 8);
  std::vector<double> expected;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double from = static_cast<double>(before[i]);
    expected.push_back(from + 0.3 * (static_cast<double>(values[i]) - from));
  }
  expected.resize(expected.size() + kBehind, static_cast<double>(kUntouched));
  CHECK(relative_error(moved(before, values, 0.3F, threads), expected) < 1e-6);
}

TEST_CASE("a moving average copies a value of weight 1, and ignores a value of weight 0") {
  const std::vector<float> values = random_floats(33, 8);
  std::vector<float> copied = values;
  copied.resize(copied.size() + kBehind, kUntouched);
  const std::vector<float> never_written(values.size(), std::numeric_limits<float>::quiet_NaN());
  CHECK(moved(never_written, values, 1.0F, 1) == copied);
  CHECK(moved(values, random_floats(33, 9), 0.0F, 1) == copied);
}

}  // namespace arbalest::tests
