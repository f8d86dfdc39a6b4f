#include <cmath>
#include <limits>

#include "tests/engine/operator_check.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

// engine/ops/prelu.h
Values prelu_of(const engine::Shape& shape, const Values& x, const Values& slopes) {
  const auto channels = static_cast<std::size_t>(shape[1]);
  const std::size_t pixels = x.size() / (static_cast<std::size_t>(shape[0]) * channels);
  Values y(x.size());
  for (std::size_t e = 0; e < x.size(); ++e) y[e] = x[e] > 0.0 ? x[e] : slopes[e / pixels % channels] * x[e];
  return y;
}

OperatorCheck prelu(const char* name, const engine::Shape& shape) {
  return {.name = name,
          .inputs = {shape},
          .parameters = {{shape[1]}},
          .spec = [](auto layouts) { return engine::PReluSpec{layouts[0]}; },
          .reference = [=](const auto& inputs,
                           const auto& parameters) { return prelu_of(shape, inputs[0], parameters[0]); }};
}

OperatorCheck with_middle(OperatorCheck check, double middle) {
  check.middle = middle;
  return check;
}

}  // namespace

TEST_CASE("parametric relu") {
  check_operators({prelu("features", {5, 37}), prelu("features in whole groups", {6, 32}),
                   prelu("images", {3, 20, 5, 4}), prelu("images with an odd number of pixels", {4, 3, 5, 5}),
                   prelu("one pixel", {5, 33, 1, 1}), prelu("one channel", {3, 1, 5, 5}), prelu("one feature", {7, 1}),
                   prelu("more work than one thread takes", {9, 2000}),
                   prelu("images that several threads or blocks add", {16, 3, 33, 31}),
                   prelu("so many examples that several blocks add", {512, 33}),
                   with_middle(prelu("nearly all above 0", {40, 8}), 0.9),
                   with_middle(prelu("nearly all below 0", {40, 8}), -0.9)});
}

// The slope of 0 is that of the numbers below it. NaN and infinity reach the gradients.
TEST_CASE("parametric relu at 0, infinity and NaN") {
  const auto device = open_test_device();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name);
    OperatorCase of;
    of.input = device->plain_layout({2, 3}, in.dtype);
    of.spec = engine::PReluSpec{of.input};
    of.input_values = {0.0, kInfinity, -kInfinity, -2.0, 3.0, kNan};
    of.parameters = {{0.5, 0.25, -0.5}};
    of.output_gradient = {4.0, 8.0, 1.0, 16.0, 2.0, 1.0};
    const OperatorRun run = run_operator(*device, of, {});
    const auto infinity = std::numeric_limits<float>::infinity();
    CHECK(Floats(run.output.begin(), run.output.end() - 1) == Floats{0.0F, infinity, infinity, -1.0F, 3.0F});
    CHECK(std::isnan(run.output[5]));
    CHECK(run.input_gradient == Floats{2.0F, 8.0F, -0.5F, 8.0F, 2.0F, -0.5F});
    CHECK(run.parameter_gradients[0][0] == -32.0F);
    CHECK(run.parameter_gradients[0][1] == 0.0F);
    CHECK(std::isnan(run.parameter_gradients[0][2]));
  }
}

}  // namespace arbalest::tests
