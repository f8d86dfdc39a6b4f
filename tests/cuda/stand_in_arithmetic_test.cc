// Operators request exactly the job's precision from CUDA's libraries. A GPU may compute small tensors without tensor
// cores, but the stand-in always applies the requested precision.
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {

using engine::Precision;

namespace {

// The error of the output in each precision, |result - reference| / |reference|.
struct Errors {
  double single, tensor, halves;
};

void check(const Errors& errors) {
  CHECK(errors.single < 1e-6);
  CHECK(errors.tensor > 1e-5);
  CHECK(errors.tensor < 0x1p-10);
  CHECK(errors.halves > 0x1p-10);
  CHECK(errors.halves < 0x1p-7);
}

Errors errors_of(const OperatorCase& of, const Values& reference) {
  const auto device = open_test_device();
  const auto error_in = [&](Precision precision) {
    return relative_error(run_operator(*device, of, {.precision = precision}).output, reference);
  };
  return {error_in(Precision::kFloat32), error_in(Precision::kTensorFloat32), error_in(Precision::kBFloat16)};
}

}  // namespace

TEST_CASE("TF32 is less precise than FP32, and BF16 less precise than TF32") {
  OperatorCase of;
  SECTION("conv2d") {
    const engine::Shape shape{4, 16, 6, 6};
    of.input = open_test_device()->plain_layout(shape, engine::DType::kFloat32);
    of.spec = engine::Conv2dSpec{of.input, 8, {{3, 3}, {1, 1}}};
    of.input_values = random_values(shape.elements(), 1);
    of.parameters = {random_values(8 * 16 * 9, 2), random_values(8, 3)};
    check(errors_of(of, conv2d(shape, of.input_values, of.parameters[0], of.parameters[1], 8, {{3, 3}, {1, 1}})));
  }
  SECTION("dense") {
    of.input = open_test_device()->plain_layout({8, 100}, engine::DType::kFloat32);
    of.spec = engine::DenseSpec{of.input, 20};
    of.input_values = random_values(800, 1);
    of.parameters = {random_values(2000, 2), random_values(20, 3)};
    check(errors_of(of, dense(8, of.input_values, of.parameters[0], of.parameters[1], 20)));
  }
}

}  // namespace arbalest::tests
