// Batch norm in training with frozen statistics: an affine function of each channel.
#include <bit>
#include <cmath>

#include "engine/ops/batch_norm.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::BatchNormSpec;
using engine::DType;
using engine::Shape;

constexpr float kEpsilon = 1e-3F;

struct NormCase {
  const char* what;
  Shape input;
  bool native = true;
};

const NormCase kCases[] = {
    {"a residual net's stem", {8, 16, 9, 7}},
    {"channels that fill no vector", {5, 20, 6, 5}},
    {"colors", {4, 3, 8, 8}, false},
    {"one number of each channel", {1, 18, 1, 1}, false},
    {"features of one example", {1, 50}, false},
    {"examples side by side", {48, 5, 7, 3}},
    {"many rows, in several slices", {16, 40, 20, 17}},
};

OperatorCase make_case(engine::Device& device, const NormCase& of, bool relu, bool has_addend, DType dtype) {
  OperatorCase result;
  result.input = of.native ? native_image_layout(device, of.input, dtype) : device.plain_layout(of.input, dtype);
  BatchNormSpec spec{.input = result.input, .epsilon = kEpsilon, .relu = relu, .frozen_statistics = true};
  if (has_addend) {
    spec.addend = result.input;
    result.others.push_back({result.input, random_values(of.input.elements(), 7, dtype)});
  }
  result.spec = spec;
  result.input_values = random_values(of.input.elements(), 1, dtype);
  const std::int64_t channels = of.input[1];
  Values variance = random_values(channels, 5);
  for (double& value : variance) value = 1.5 + value;
  result.parameters = {random_values(channels, 2), random_values(channels, 3), random_values(channels, 4),
                       representable(variance, DType::kFloat32)};
  result.output_gradient = random_values(of.input.elements(), 6, dtype);
  return result;
}

// The output before ReLU for given inputs, scale and shift.
Values normalized(const OperatorCase& run, const Shape& shape, const Values& input, const Values& scale,
                  const Values& shift) {
  return batch_norm_by(shape, input, scale, shift, run.parameters[2], run.parameters[3], double{kEpsilon});
}

// The sum over each channel of the products of a and b.
Values channel_sums(const Shape& shape, const Values& a, const Values& b) {
  const std::int64_t channels = shape[1];
  const std::int64_t pixels = shape.elements() / shape[0] / channels;
  Values sums(static_cast<std::size_t>(channels), 0.0);
  for (std::size_t e = 0; e < a.size(); ++e) {
    sums[e / static_cast<std::size_t>(pixels) % static_cast<std::size_t>(channels)] += a[e] * b[e];
  }
  return sums;
}

TEST_CASE("batch norm with frozen statistics agrees with the reference") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  const bool relu = GENERATE(false, true);
  const bool has_addend = GENERATE(false, true);
  if (has_addend && !relu) return;
  for (const NormCase& of : kCases) {
    DYNAMIC_SECTION(of.what << ", threads " << threads << ", relu " << relu << ", addend " << has_addend) {
      for (const Arithmetic& in : tensor_types(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, relu, has_addend, in.dtype);
        run.replayed = true;
        const OperatorRun result = run_operator(*device, run, {.threads = threads});
        Values expected = normalized(run, of.input, run.input_values, run.parameters[0], run.parameters[1]);
        for (std::size_t e = 0; has_addend && e < expected.size(); ++e) expected[e] += run.others[0].values[e];
        Values arriving = run.output_gradient;
        for (std::size_t e = 0; relu && e < arriving.size(); ++e) {
          const bool is_active = has_addend ? result.output[e] > 0.0F : expected[e] > 0.0;
          if (!is_active) arriving[e] = 0.0;
          expected[e] = std::max(expected[e], 0.0);
        }
        CHECK(relative_error(result.output, expected) < in.tolerance);

        // The function is affine in the input, and linear in scale and shift.
        const Values zeros(run.input_values.size(), 0.0);
        const Values ones(run.input_values.size(), 1.0);
        const Values of_one = normalized(run, of.input, ones, run.parameters[0], run.parameters[1]);
        const Values of_zero = normalized(run, of.input, zeros, run.parameters[0], run.parameters[1]);
        Values input_gradient = arriving;
        for (std::size_t e = 0; e < zeros.size(); ++e) input_gradient[e] *= of_one[e] - of_zero[e];
        CHECK(relative_error(result.input_gradient, input_gradient) < in.tolerance);
        const std::size_t channels = run.parameters[0].size();
        const Values of_scale =
            normalized(run, of.input, run.input_values, Values(channels, 1.0), Values(channels, 0.0));
        CHECK(relative_error(result.parameter_gradients.at(0), channel_sums(of.input, arriving, of_scale)) < 3e-5);
        CHECK(relative_error(result.parameter_gradients.at(1), channel_sums(of.input, arriving, ones)) < 3e-5);
        if (has_addend) CHECK(relative_error(result.other_gradients.at(0), arriving) < 1e-9);
        CHECK(result.padding_is_zero);
        for (const std::size_t statistic : {2U, 3U}) {  // still the garbage that the buffers began with
          for (const float value : result.parameter_gradients.at(statistic)) {
            CHECK(std::bit_cast<std::uint32_t>(value) == 0x41414141U);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace arbalest::tests
