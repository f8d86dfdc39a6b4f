#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::DType;
using engine::LocalResponseNormSpec;
using engine::OperatorMode;
using engine::Shape;

struct NormCase {
  const char* what;
  Shape input;
  ResponseNorm norm;
};

const NormCase kNorms[] = {
    {"AlexNet's, few channels", {3, 20, 7, 6}, {5, 1e-4, 0.75, 1.0}},
    {"strong, 96 channels", {2, 96, 9, 13}, {5, 0.5, 0.75, 2.0}},
    {"size three, another power", {2, 17, 3, 3}, {3, 1.0, 0.5, 0.5}},
    {"more neighbors than channels", {2, 3, 5, 5}, {7, 0.3, 0.6, 1.0}},
    {"of each channel alone", {4, 16, 2, 2}, {1, 0.7, 1.0, 1.0}},
    {"one channel", {3, 1, 5, 5}, {5, 0.2, 0.75, 1.0}},
    {"one pixel", {5, 33, 1, 1}, {5, 0.2, 0.75, 1.0}},
    {"a single number", {1, 1, 1, 1}, {5, 0.2, 0.75, 1.0}},
};

TEST_CASE("local response normalization agrees with the reference") {
  const auto device = open_test_device();
  const bool native = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  const bool in_place = GENERATE(false, true);
  for (const NormCase& of : kNorms) {
    DYNAMIC_SECTION(of.what << ", native " << native << ", threads " << threads << ", in place " << in_place) {
      for (const Arithmetic& in : tensor_types(*device)) {
        CAPTURE(in.name);
        OperatorCase run;
        run.input =
            native ? native_image_layout(*device, of.input, in.dtype) : device->plain_layout(of.input, in.dtype);
        run.spec = LocalResponseNormSpec{run.input, of.norm.size, static_cast<float>(of.norm.alpha),
                                         static_cast<float>(of.norm.beta), static_cast<float>(of.norm.k)};
        run.input_values = random_values(of.input.elements(), 1, in.dtype);
        for (double& value : run.input_values) value *= 2.0;
        run.output_gradient = random_values(of.input.elements(), 2, in.dtype);
        run.replayed = true;
        run.in_place = in_place;

        const OperatorRun result = run_operator(*device, run, {.threads = threads});
        CHECK(relative_error(result.output, local_response_norm(of.input, run.input_values, of.norm)) < in.tolerance);
        CHECK(relative_error(result.input_gradient, local_response_norm_gradient(of.input, run.input_values, of.norm,
                                                                                 run.output_gradient)) < in.tolerance);
        CHECK(result.padding_is_zero);
        const OperatorRun inference =
            run_operator(*device, run, {.mode = OperatorMode::kInference, .threads = threads});
        CHECK(inference.output == result.output);
        CHECK(device->prepare(run.spec, {})->traits().saved_bytes == 0);
      }
    }
  }
}

TEST_CASE("local response normalization gives the same bits for every number of threads") {
  const auto device = open_test_device();
  OperatorCase of;
  of.input = device->plain_layout({2, 20, 9, 13}, DType::kFloat32);
  of.spec = LocalResponseNormSpec{of.input, 5, 0.5F};
  of.input_values = random_values(of.input.shape().elements(), 1);
  of.output_gradient = random_values(of.input.shape().elements(), 2);
  const OperatorRun one = run_operator(*device, of, {});
  const OperatorRun three = run_operator(*device, of, {.threads = 3});
  CHECK(three.output == one.output);
  CHECK(three.input_gradient == one.input_gradient);
}

}  // namespace
}  // namespace arbalest::tests
