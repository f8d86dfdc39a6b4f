// Winograd convolution of bfloat16: its results, and when it is used.
#include "engine/cpu/winograd/convolution.h"

#include <algorithm>

#include "engine/cpu/lanes/convolution_method.h"
#include "engine/cpu/lanes/lanes.h"
#include "tests/engine/lane_tensors.h"
#include "tests/engine/operator_run.h"
#include "tests/engine/winograd_run.h"
#include "tests/support/amx.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

using engine::BFloat16;
using engine::Conv2dSpec;
using engine::DType;
using engine::Shape;
using engine::Window;
using Case = WinogradCase;
using Arguments = WinogradArguments;
using Results = WinogradResults;

constexpr Window kWindow{{3, 3}, {1, 1}, {1, 1}};
constexpr std::int64_t kTaps = 9;
// The method rounds transformed tensors and weights one additional time, for each of the three products of a row. Each
// rounding adds at most half of 2^-8.
constexpr double kTolerance = 0x1p-7;

const Case kCases[] = {
    {"a residual net's last stage", {32, 64, 8, 8}, 64},
    {"more blocks than are transformed at once, wide", {48, 24, 16, 28}, 18},
    {"an odd number of channels, filters in groups of three and two, high", {48, 17, 10, 6}, 20},
    {"two groups of two filters, no row but the first and the last", {16, 3, 2, 4}, 7},
    {"one tile, two channels and filters", {16, 2, 2, 2}, 2},
    {"one channel, filters in groups of three", {16, 1, 4, 2}, 9},
};

Arguments random_arguments(const Case& of) {
  const std::int64_t results = of.input.elements() / of.input[1] * of.filters;
  return {random_values(of.input.elements(), 1, DType::kBFloat16),
          random_values(of.filters * of.input[1] * kTaps, 2, DType::kBFloat16), random_values(of.filters, 3),
          random_values(results, 4, DType::kBFloat16)};
}

// Numbers for which all sums of the method are exact in bfloat16, so that its results equal the definition's.
Arguments whole_numbers(const Case& of) {
  Arguments some = random_arguments(of);
  const auto make_whole = [](Values& values, double largest, double step) {
    for (double& value : values) value = std::round(value * largest) * step;
  };
  make_whole(some.input, 4, 1);
  make_whole(some.weights, 4, 2);  // the method halves some of their sums
  make_whole(some.bias, 4, 1);
  make_whole(some.arriving, 4, 1);
  return some;
}

Results expected(const Case& of, const Arguments& with) {
  const auto floats = [](const Values& values) { return Floats(values.begin(), values.end()); };
  const LinearGradients gradients =
      conv2d_gradients(of.input, with.input, with.weights, of.filters, kWindow, with.arriving);
  Results results;
  results.output = floats(conv2d(of.input, with.input, with.weights, with.bias, of.filters, kWindow));
  results.rectified = results.output;
  for (float& value : results.rectified) value = std::max(value, 0.0F);
  if (of.input[1] > 1) results.input_gradient = floats(gradients.input);
  results.weights_gradient = swapped(gradients.weights, of.filters, kTaps, of.input[1]);
  results.bias_gradient = floats(gradients.bias);
  return results;
}

// A way to run the kernels.
struct Runner {
  const char* name;
  Results (*run)(const Case& of, int threads, const Arguments& with);
};

std::vector<Runner> runners() {
  std::vector<Runner> all{{"emulated", run_emulated_winograd}};
  if (engine::cpu::bfloat16_lane_kernels() != nullptr) {
    all.push_back({"native", run_winograd<engine::cpu::WinogradConvolution, engine::cpu::WinogradWeightsGradient>});
  }
  return all;
}

void require_processor() {
  if (engine::cpu::bfloat16_lane_kernels() == nullptr) skip_test("it takes a processor with avx512_bf16");
}

TEST_CASE("Winograd convolution is close to the definition, with the same bits for any number of threads") {
  const Runner runner = GENERATE(from_range(runners()));
  for (const Case& of : kCases) {
    DYNAMIC_SECTION(of.what << ", " << runner.name) {
      const Arguments with = random_arguments(of);
      const Results results = runner.run(of, 1, with);
      const Results wanted = expected(of, with);
      const auto error = [](const Floats& actual, const Floats& reference) {
        return relative_error(actual, Values(reference.begin(), reference.end()));
      };
      CHECK(error(results.output, wanted.output) < kTolerance);
      CHECK(error(results.input_gradient, wanted.input_gradient) < kTolerance);
      CHECK(error(results.weights_gradient, wanted.weights_gradient) < kTolerance);
      CHECK(error(results.bias_gradient, wanted.bias_gradient) < 1e-4);  // few sums, which may cancel
      CHECK(runner.run(of, 3, with) == results);
    }
  }
}

TEST_CASE("Winograd convolution equals the definition if all its sums are exact in bfloat16") {
  const Runner runner = GENERATE(from_range(runners()));
  for (const Case& of : kCases) {
    DYNAMIC_SECTION(of.what << ", " << runner.name) {
      const Arguments with = whole_numbers(of);
      Results wanted = expected(of, with);
      for (Floats* rounded : {&wanted.output, &wanted.rectified, &wanted.input_gradient}) {
        for (float& value : *rounded) value = engine::elementwise::load(engine::elementwise::to_bfloat16(value));
      }
      CHECK((runner.run(of, 1, with) == wanted));
    }
  }
}

TEST_CASE("in Winograd convolution, a NaN affects exactly the windows that contain it, and a ReLU keeps it") {
  const Runner runner = GENERATE(from_range(runners()));
  CAPTURE(runner.name);
  const Case of{"", {16, 2, 4, 6}, 2};
  Arguments with = whole_numbers(of);
  const auto at = [](std::int64_t channel, std::int64_t y, std::int64_t x) {  // in example 0
    return static_cast<std::size_t>((channel * 4 + y) * 6 + x);
  };
  const std::int64_t y = GENERATE(0, 1, 2, 3);
  const std::int64_t x = GENERATE(0, 1, 2, 5);
  with.input[at(1, y, x)] = NAN;
  const Floats rectified = runner.run(of, 1, with).rectified;
  for (std::int64_t filter = 0; filter < 2; ++filter) {
    for (std::int64_t row = 0; row < 4; ++row) {
      for (std::int64_t column = 0; column < 6; ++column) {
        CAPTURE(y, x, filter, row, column);
        CHECK(std::isnan(rectified[at(filter, row, column)]) == (std::abs(row - y) < 2 && std::abs(column - x) < 2));
      }
    }
  }
  CHECK(std::none_of(rectified.begin() + of.input.elements_per_example(), rectified.end(),
                     [](float value) { return std::isnan(value); }));
}

TEST_CASE("Winograd convolution is chosen for the 3 x 3 convolutions of bfloat16 for which it is faster") {
  require_processor();
  const auto device = open_test_device();
  const auto taken = [&](const Shape& input, std::int64_t filters, const Window& window = kWindow,
                         DType type = DType::kBFloat16) {
    const Conv2dSpec spec{device->plain_layout(input, type), filters, window};
    return engine::cpu::prefers_winograd(spec, type);
  };
  CHECK(taken({32, 16, 32, 32}, 16));
  CHECK(taken({16, 64, 2, 2}, 17));
  CHECK_FALSE(taken({32, 15, 32, 32}, 16));
  CHECK_FALSE(taken({32, 16, 32, 32}, 15));
  CHECK_FALSE(taken({32, 16, 31, 32}, 16));
  CHECK_FALSE(taken({32, 16, 32, 31}, 16));
  CHECK_FALSE(taken({32, 16, 32, 32}, 16, {{3, 3}, {1, 1}}));
  CHECK_FALSE(taken({32, 16, 32, 32}, 16, {{3, 3}, {2, 2}, {1, 1}}));
  CHECK_FALSE(taken({32, 16, 32, 32}, 16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}));
  CHECK_FALSE(taken({32, 16, 32, 32}, 16, {{5, 5}, {1, 1}, {2, 2}}));
  CHECK_FALSE(taken({32, 16, 32, 32}, 16, kWindow, DType::kFloat32));
}

TEST_CASE("a Winograd convolution layer trains with a bias and an activation") {
  require_processor();
  skip_with_amx();
  const auto device = open_test_device();
  const bool swaps = GENERATE(false, true);  // parameters in the layout of oneDNN's kernels
  const Shape shape{32, 16, 8, 6};
  OperatorCase of;
  of.input = device->plain_layout(shape, DType::kBFloat16);
  const Conv2dSpec spec{
      .input = of.input, .filters = 18, .window = kWindow, .activation = engine::ActivationKind::kRelu};
  REQUIRE(engine::cpu::prefers_winograd(spec, DType::kBFloat16));
  of.spec = spec;
  of.input_values = random_values(shape.elements(), 1, DType::kBFloat16);
  of.parameters = {random_values(18 * 16 * kTaps, 2, DType::kBFloat16), random_values(18, 3)};
  of.output_gradient = random_values(shape.elements() / 16 * 18, 4, DType::kBFloat16);
  engine::PrepareOptions options{.precision = engine::Precision::kBFloat16};
  if (swaps) {
    Conv2dSpec other = spec;
    other.input = device->plain_layout({20, 16, 8, 6}, DType::kBFloat16);
    options.parameters = device->prepare(other, options)->traits().parameters;
  }
  REQUIRE(engine::cpu::lies_in_lanes(device->prepare(spec, options)->traits().output));
  const OperatorRun run = run_operator(*device, of, options);
  Values output = conv2d(shape, of.input_values, of.parameters[0], of.parameters[1], 18, kWindow);
  for (double& value : output) value = std::max(value, 0.0);
  CHECK(relative_error(run.output, output) < kTolerance);
  Values arriving = of.output_gradient;
  for (std::size_t i = 0; i < arriving.size(); ++i) arriving[i] = run.output[i] > 0.0F ? arriving[i] : 0.0;
  const LinearGradients gradients = conv2d_gradients(shape, of.input_values, of.parameters[0], 18, kWindow, arriving);
  CHECK(relative_error(run.input_gradient, gradients.input) < kTolerance);
  CHECK(relative_error(run.parameter_gradients[0], gradients.weights) < kTolerance);
  CHECK(relative_error(run.parameter_gradients[1], gradients.bias) < 1e-5);
}

}  // namespace
}  // namespace arbalest::tests
