#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::DropoutSpec;
using engine::DType;
using engine::Layout;
using engine::OperatorMode;
using engine::Shape;

constexpr std::uint64_t kSeed = 0x123456789abcdef0U;
constexpr std::uint64_t kTask = 0x500000003U;

OperatorCase make_case(const Layout& layout, float ratio, std::uint32_t layer = 2) {
  OperatorCase of;
  of.input = layout;
  of.spec = DropoutSpec{layout, ratio, layer};
  of.input_values = Values(static_cast<std::size_t>(layout.shape().elements()), 1.0);
  of.output_gradient = random_values(layout.shape().elements(), 2);
  of.step.seed = kSeed;
  of.step.task = kTask;
  return of;
}

TEST_CASE("dropout follows the reference mask, forward and backward") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  const bool in_place = GENERATE(false, true);
  const bool native = GENERATE(false, true);
  const Shape shape = GENERATE(Shape{5, 20, 7, 9}, Shape{16, 5, 3, 2}, Shape{1, 17, 1, 1}, Shape{1, 1, 1, 1});
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(to_string(shape), in.name);
    OperatorCase of =
        make_case(native ? native_image_layout(*device, shape, in.dtype) : device->plain_layout(shape, in.dtype), 0.3F);
    of.input_values = random_values(shape.elements(), 1, in.dtype);
    of.output_gradient = representable(of.output_gradient, in.dtype);
    of.in_place = in_place;
    const OperatorRun run = run_operator(*device, of, {.threads = threads});

    const Values factors = dropout_factors(shape.elements(), static_cast<double>(0.3F), 2, kSeed, kTask);
    Values output;
    Values input_gradient;
    for (std::size_t e = 0; e < factors.size(); ++e) {
      output.push_back(of.input_values[e] * factors[e]);
      input_gradient.push_back(of.output_gradient[e] * factors[e]);
    }
    const double tolerance = in.dtype == DType::kFloat32 ? 1e-6 : in.tolerance;
    CHECK(relative_error(run.output, output) < tolerance);
    CHECK(relative_error(run.input_gradient, input_gradient) < tolerance);
    CHECK(run.padding_is_zero);
  }
}

TEST_CASE("dropout's mask depends on seed, task and layer only") {
  const auto device = open_test_device();
  const Layout layout = device->plain_layout({8, 50}, DType::kFloat32);
  const OperatorCase of = make_case(layout, 0.5F);
  const Floats mask = run_operator(*device, of, {}).output;
  CHECK(run_operator(*device, of, {.threads = 3}).output == mask);

  OperatorCase other_seed = of;
  other_seed.step.seed += std::uint64_t{1} << 32U;
  CHECK(run_operator(*device, other_seed, {}).output != mask);
  OperatorCase other_task = of;
  other_task.step.task += std::uint64_t{1} << 32U;
  CHECK(run_operator(*device, other_task, {}).output != mask);
  CHECK(run_operator(*device, make_case(layout, 0.5F, 3), {}).output != mask);

  // Learning rate, pull and reference are not part of the key.
  OperatorCase other_step = of;
  other_step.step.learning_rate = 1.0F;
  other_step.step.pull = 0.5F;
  other_step.step.reference = 1;
  CHECK(run_operator(*device, other_step, {}).output == mask);

  // A smaller mini-batch gets the first part of the same mask.
  const Floats part = run_operator(*device, make_case(device->plain_layout({3, 50}, DType::kFloat32), 0.5F), {}).output;
  CHECK(std::equal(part.begin(), part.end(), mask.begin()));
}

TEST_CASE("dropout drops the given ratio and keeps the mean") {
  const auto device = open_test_device();
  const float ratio = GENERATE(0.0F, 0.1F, 0.5F, 0.9F);
  constexpr std::int64_t kElements = 100000;
  const OperatorRun run =
      run_operator(*device, make_case(device->plain_layout({10, kElements / 10}, DType::kFloat32), ratio), {});
  const auto dropped = static_cast<double>(std::count(run.output.begin(), run.output.end(), 0.0F));
  // Five standard deviations of a binomial distribution.
  const double p = static_cast<double>(ratio);
  CHECK(std::abs(dropped - kElements * p) <= 5.0 * std::sqrt(kElements * p * (1.0 - p)));
  for (const float value : run.output) {
    if (value != 0.0F && value != 1.0F / (1.0F - ratio)) FAIL("an element was scaled by " << value);
  }
}

TEST_CASE("dropout at inference is the identity") {
  const auto device = open_test_device();
  const bool in_place = GENERATE(false, true);
  for (const Arithmetic& in : tensor_types(*device)) {
    OperatorCase of = make_case(native_image_layout(*device, {5, 3, 4, 4}, in.dtype), 0.5F);
    of.input_values = random_values(of.input.shape().elements(), 1, in.dtype);
    of.in_place = in_place;
    const OperatorRun run = run_operator(*device, of, {.mode = OperatorMode::kInference});
    CHECK(relative_error(run.output, of.input_values) == 0.0);
    CHECK(run.padding_is_zero);
  }
}

}  // namespace
}  // namespace arbalest::tests
