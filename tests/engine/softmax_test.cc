#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::DType;
using engine::OperatorMode;
using engine::SoftmaxSpec;

OperatorCase make_case(engine::Device& device, std::int64_t rows, std::int64_t classes, const Values& logits,
                       DType dtype = DType::kFloat32) {
  OperatorCase of;
  of.input = device.plain_layout({rows, classes}, dtype);
  of.spec = SoftmaxSpec{of.input};
  of.input_values = representable(logits, dtype);
  of.output_gradient = random_values(rows * classes, 2, dtype);
  return of;
}

TEST_CASE("softmax agrees with the reference, also in place") {
  const auto device = open_test_device();
  const auto [rows, classes] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {1, 2}, {5, 17}, {32, 1000}, {257, 10}}));
  const bool in_place = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  const double scale = GENERATE(1.0, 20.0);
  Values logits = random_values(rows * classes, 1);
  for (double& logit : logits) logit *= scale;
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(in.name, rows, classes, scale);
    OperatorCase of = make_case(*device, rows, classes, logits, in.dtype);
    of.in_place = in_place;
    const OperatorRun run = run_operator(*device, of, {.threads = threads});
    CHECK(relative_error(run.output, softmax(classes, of.input_values)) < in.tolerance);
    // Rounding a probability near 1 causes an equally large error in the gradient, so the error is measured relative to
    // the output gradient.
    const Values expected = softmax_gradient(classes, of.input_values, of.output_gradient);
    double error = 0.0;
    for (std::size_t e = 0; e < expected.size(); ++e) {
      error = std::max(error, std::abs(static_cast<double>(run.input_gradient[e]) - expected[e]));
    }
    CHECK(error < 2.0 * in.tolerance);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference, .threads = threads}).output == run.output);
  }
}

TEST_CASE("softmax of logits that are far apart or NaN") {
  const auto device = open_test_device();
  OperatorCase of = make_case(*device, 2, 3, {1000, 0, -1000, 0, std::nan(""), 1});
  of.output_gradient = Values(6, 1.0);
  const OperatorRun run = run_operator(*device, of, {});
  CHECK(Floats(run.output.begin(), run.output.begin() + 3) == Floats{1.0F, 0.0F, 0.0F});
  for (std::size_t e = 3; e < 6; ++e) CHECK(std::isnan(run.output[e]));
  CHECK(run.input_gradient[0] == 0.0F);
}

}  // namespace
}  // namespace arbalest::tests
