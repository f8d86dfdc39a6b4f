// Activations and flatten, compared with the references.
#include <limits>

#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::ActivationFunction;
using engine::ActivationKind;
using engine::ActivationSpec;
using engine::DType;
using engine::FlattenSpec;
using engine::Layout;
using engine::OperatorMode;
using engine::Shape;

Floats to_floats(const Values& values) {
  Floats floats;
  for (const double value : values) floats.push_back(static_cast<float>(value));
  return floats;
}

TEST_CASE("activations agree with the reference, also in place") {
  const auto device = open_test_device();
  const ActivationFunction f =
      GENERATE(as<ActivationFunction>{}, ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid,
               ActivationFunction(ActivationKind::kLeakyRelu, 0.25F), ActivationKind::kGelu, ActivationKind::kSilu,
               ActivationKind::kRelu6, ActivationKind::kHardSwish);
  // Some values lie beyond the bounds of relu6 and hard_swish.
  const double scale = f.kind == ActivationKind::kRelu6 || f.kind == ActivationKind::kHardSwish ? 12.0 : 4.0;
  const bool in_place = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  const Shape shape = GENERATE(Shape{5, 33}, Shape{1, 1}, Shape{5, 20, 7, 3}, Shape{16, 5, 3, 2}, Shape{1, 17, 1, 1},
                               Shape{1, 1, 1, 1});
  const bool native = shape.rank() == 4 && GENERATE(false, true);
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(to_string(shape), native, in.name);
    const Layout layout =
        native ? native_image_layout(*device, shape, in.dtype) : device->plain_layout(shape, in.dtype);

    OperatorCase of;
    of.input = layout;
    of.spec = ActivationSpec{layout, f};
    of.input_values = random_values(layout.shape().elements(), 1, in.dtype);
    for (double& value : of.input_values) value *= scale;
    of.output_gradient = random_values(layout.shape().elements(), 2, in.dtype);
    of.in_place = in_place;
    const OperatorRun run = run_operator(*device, of, {.threads = threads});

    const Values expected = activation(of.input_values, f);
    CHECK(relative_error(run.output, expected) < in.tolerance);
    // The backward pass reads the output in its stored precision.
    const Values read = differentiates_input(f.kind) ? of.input_values : representable(expected, in.dtype);
    const Values gradient = activation_gradient(read, f, of.output_gradient);
    CHECK(relative_error(run.input_gradient, gradient) < in.tolerance);
    CHECK(run.padding_is_zero);
    const OperatorRun inference = run_operator(*device, of, {.mode = OperatorMode::kInference, .threads = threads});
    CHECK(inference.output == run.output);
    CHECK(inference.padding_is_zero);
  }
}

TEST_CASE("the backward pass of an in-place activation reads the output, not the input") {
  const auto device = open_test_device();
  const Layout layout = device->plain_layout({4, 4}, DType::kFloat32);
  const auto op = device->prepare(ActivationSpec{layout, ActivationKind::kTanh}, {});
  CHECK(op->traits().in_place_forward);
  CHECK(op->traits().in_place_backward);
  CHECK(op->traits().backward_reads_output);
  CHECK_FALSE(op->traits().backward_reads_inputs);
  CHECK(op->traits().saved_bytes == 0);
}

TEST_CASE("an activation that is differentiated by its input keeps it for the backward pass") {
  const auto device = open_test_device();
  const auto kind = GENERATE(ActivationKind::kGelu, ActivationKind::kSilu, ActivationKind::kHardSwish);
  const Layout layout = device->plain_layout({4, 4}, DType::kFloat32);
  const auto op = device->prepare(ActivationSpec{layout, kind}, {});
  CHECK_FALSE(op->traits().in_place_forward);
  CHECK(op->traits().in_place_backward);
  CHECK(op->traits().backward_reads_inputs);
  CHECK_FALSE(op->traits().backward_reads_output);
  CHECK(device->prepare(ActivationSpec{layout, kind}, {.mode = OperatorMode::kInference})->traits().in_place_forward);
}

TEST_CASE("activations of NaN and of numbers far from zero") {
  const auto device = open_test_device();
  const ActivationFunction f = GENERATE(as<ActivationFunction>{}, ActivationFunction(ActivationKind::kLeakyRelu, 0.25F),
                                        ActivationKind::kGelu, ActivationKind::kSilu, ActivationKind::kHardSwish);
  OperatorCase of;
  of.input = device->plain_layout({4}, DType::kFloat32);
  of.spec = ActivationSpec{of.input, f};
  of.input_values = {std::nan(""), 1000.0, -1000.0, 0.0};
  of.output_gradient = {1.0, 1.0, 1.0, 1.0};
  const OperatorRun run = run_operator(*device, of, {});
  CHECK(std::isnan(run.output[0]));
  const float left = f.kind == ActivationKind::kLeakyRelu ? 0.25F : 0.0F;
  CHECK(Floats(run.output.begin() + 1, run.output.end()) == Floats{1000.0F, -1000.0F * left, 0.0F});
  CHECK(run.input_gradient[1] == 1.0F);
  CHECK(run.input_gradient[2] == left);
}

TEST_CASE("relu6 keeps values between its bounds, and only these have a gradient") {
  const auto device = open_test_device();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name);
    OperatorCase of;
    of.input = device->plain_layout({8}, in.dtype);
    of.spec = ActivationSpec{of.input, ActivationKind::kRelu6};
    of.input_values = {-kInfinity, -0.5, 0.0, 0.5, 5.5, 6.0, 6.5, kInfinity};
    of.output_gradient = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0};
    const OperatorRun run = run_operator(*device, of, {});
    CHECK(run.output == Floats{0.0F, 0.0F, 0.0F, 0.5F, 5.5F, 6.0F, 6.0F, 6.0F});
    CHECK(run.input_gradient == Floats{0.0F, 0.0F, 0.0F, 4.0F, 5.0F, 0.0F, 0.0F, 0.0F});
  }
}

TEST_CASE("hard swish has the derivative 0 up to -3 and 1 from 3 on, as in PyTorch") {
  const auto device = open_test_device();
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name);
    OperatorCase of;
    of.input = device->plain_layout({8}, in.dtype);
    of.spec = ActivationSpec{of.input, ActivationKind::kHardSwish};
    of.input_values = {-64.0, -3.0, -1.5, 0.0, 1.5, 3.0, 4.0, 64.0};
    of.output_gradient = {1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0};
    const OperatorRun run = run_operator(*device, of, {});
    const Values outputs{0.0, 0.0, -0.375, 0.0, 1.125, 3.0, 4.0, 64.0};
    const Values gradients{0.0, 0.0, 0.0, 2.0, 6.0, 8.0, 16.0, 32.0};
    for (std::size_t e = 0; e < outputs.size(); ++e) {
      CAPTURE(of.input_values[e]);
      CHECK(std::abs(static_cast<double>(run.output[e]) - outputs[e]) < 1e-6);
      CHECK(std::abs(static_cast<double>(run.input_gradient[e]) - gradients[e]) < 1e-6);
    }
  }
}

TEST_CASE("flatten gives canonical order, and its gradient has the input's layout") {
  const auto device = open_test_device();
  const bool native = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  const Shape shape =
      GENERATE(Shape{5, 20, 3, 4}, Shape{16, 5, 3, 2}, Shape{1, 17, 1, 1}, Shape{3, 17, 1, 1}, Shape{1, 1, 1, 1});
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(to_string(shape), in.name);
    OperatorCase of;
    of.input = native ? native_image_layout(*device, shape, in.dtype) : device->plain_layout(shape, in.dtype);
    of.spec = FlattenSpec{of.input};
    of.input_values = random_values(shape.elements(), 1, in.dtype);
    of.output_gradient = random_values(shape.elements(), 2, in.dtype);
    of.in_place = in_place;

    const OperatorRun run = run_operator(*device, of, {});
    CHECK(run.output == to_floats(of.input_values));
    CHECK(run.input_gradient == to_floats(of.output_gradient));
    CHECK(run.padding_is_zero);
    CHECK(device->prepare(of.spec, {})->traits().output.shape() == Shape{shape[0], shape.elements_per_example()});
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference}).output == run.output);
  }
}

}  // namespace
}  // namespace arbalest::tests
