// Convolutions and dense layers by our own kernels, beyond what the tests of all devices check.
#include "engine/cuda/products/divisor.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {
namespace {

using engine::Conv2dSpec;
using engine::DenseSpec;
using engine::DType;
using engine::PrepareOptions;
using engine::Shape;

OperatorCase convolution(engine::Device& device, const Shape& input, std::int64_t filters, std::int64_t stride) {
  OperatorCase of;
  of.input = device.plain_layout(input, DType::kFloat32);
  const Conv2dSpec spec{of.input, filters, {{3, 3}, {stride, stride}, {1, 1}}};
  of.spec = spec;
  of.input_values = random_values(input.elements(), 1);
  of.parameters = {random_values(filters * input[1] * 9, 2), random_values(filters, 3)};
  of.output_gradient = random_values(engine::window_output_shape(input, spec.window, filters).elements(), 4);
  return of;
}

OperatorCase dense(engine::Device& device, std::int64_t examples, std::int64_t features, std::int64_t units) {
  OperatorCase of;
  of.input = device.plain_layout({examples, features}, DType::kFloat32);
  of.spec = DenseSpec{of.input, units};
  of.input_values = random_values(examples * features, 1);
  of.parameters = {random_values(units * features, 2), random_values(units, 3)};
  of.output_gradient = random_values(examples * units, 4);
  return of;
}

}  // namespace

TEST_CASE("our kernels add the gradient of an input to another tensor, in its place or not", "[own_kernels]") {
  const auto device = open_test_device();
  for (OperatorCase of :
       {convolution(*device, {3, 5, 8, 8}, 7, 1), convolution(*device, {2, 3, 7, 5}, 20, 2),
        convolution(*device, {2, 16, 8, 8}, 16, 1), dense(*device, 4, 33, 10), dense(*device, 2, 6, 5)}) {
    REQUIRE(device->prepare(of.spec, {})->traits().adds_to_gradient);
    const OperatorRun alone = run_operator(*device, of, {});
    of.addend = random_values(of.input.shape().elements(), 5);
    for (const bool in_place : {false, true}) {
      of.in_place = in_place;
      const OperatorRun added = run_operator(*device, of, {});
      REQUIRE(added.input_gradient.size() == alone.input_gradient.size());
      for (std::size_t i = 0; i < alone.input_gradient.size(); ++i) {
        REQUIRE(added.input_gradient[i] == static_cast<float>(of.addend[i]) + alone.input_gradient[i]);
      }
      CHECK(added.parameter_gradients == alone.parameter_gradients);
    }
  }
}

TEST_CASE("our kernels give the same bits with and without a bias, but for the bias", "[own_kernels]") {
  const auto device = open_test_device();
  OperatorCase of = convolution(*device, {3, 5, 8, 8}, 7, 1);
  const OperatorRun with = run_operator(*device, of, {});
  std::get<Conv2dSpec>(of.spec).bias = false;
  of.parameters.pop_back();
  const OperatorRun without = run_operator(*device, of, {});
  CHECK(without.input_gradient == with.input_gradient);
  CHECK(without.parameter_gradients[0] == with.parameter_gradients[0]);
}

TEST_CASE("a divisor gives every quotient") {
  using engine::cuda::Divisor;
  for (const int divisor : {1, 2, 3, 5, 7, 9, 25, 64, 144, 576, 1000, 65535, 65537, 0x40000000, 0x7FFFFFFF}) {
    const Divisor of(divisor);
    for (const int step : {1, 3, 1009, 1000003}) {
      for (std::int64_t n = 0, count = 0; n <= 0x7FFFFFFF && count < 3000; n += step, ++count) {
        REQUIRE(of.quotient(static_cast<int>(n)) == static_cast<int>(n) / divisor);
      }
    }
    for (std::int64_t multiple = divisor; multiple <= 0x7FFFFFFF && multiple < 100LL * divisor; multiple += divisor) {
      REQUIRE(of.quotient(static_cast<int>(multiple)) == multiple / divisor);
      REQUIRE(of.quotient(static_cast<int>(multiple - 1)) == multiple / divisor - 1);
    }
    REQUIRE(of.quotient(0x7FFFFFFF) == 0x7FFFFFFF / divisor);
  }
}

}  // namespace arbalest::tests
