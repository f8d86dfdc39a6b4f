#include "engine/ops/batch_norm.h"

#include <algorithm>
#include <functional>

#include "engine/cpu/normalization/blocked_batch_norm.h"
#include "engine/cpu/onednn/layout.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::BatchNormSpec;
using engine::Device;
using engine::DType;
using engine::OperatorMode;
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
    {"17 channels in canonical order", {3, 17, 4, 5}, false},
    {"colors", {4, 3, 8, 8}, false},
    {"one channel", {6, 1, 5, 5}},
    {"one pixel", {9, 33, 1, 1}},
    {"two numbers of each channel", {2, 5, 1, 1}, false},
    {"one example", {1, 18, 3, 5}},
    {"features", {12, 50}, false},
    {"one feature", {7, 1}, false},
    {"examples side by side", {48, 5, 7, 3}},
    {"many rows, in several slices", {16, 40, 20, 17}},
};

Values relu_of(Values values) {
  for (double& value : values) value = std::max(value, 0.0);
  return values;
}

// A case with numbers whose mean is a few standard deviations from zero, and with matching parameters.
OperatorCase make_case(Device& device, const NormCase& of, bool relu, DType dtype) {
  OperatorCase result;
  result.input = of.native && of.input.rank() == 4 ? native_image_layout(device, of.input, dtype)
                                                   : device.plain_layout(of.input, dtype);
  result.spec = BatchNormSpec{result.input, kEpsilon, relu};
  result.input_values = random_values(of.input.elements(), 1);
  for (double& value : result.input_values) value = 2.0 + 0.7 * value;
  result.input_values = representable(result.input_values, dtype);
  const std::int64_t channels = of.input[1];
  Values variance = random_values(channels, 5);
  for (double& value : variance) value = 1.5 + value;
  result.parameters = {random_values(channels, 2), random_values(channels, 3), random_values(channels, 4),
                       representable(variance, DType::kFloat32)};
  result.output_gradient = random_values(of.input.elements(), 6, dtype);
  return result;
}

// Sums are float32 for every type of elements. Terms of both signs cancel, which costs digits.
constexpr double kSumTolerance = 3e-5;

TEST_CASE("batch norm in training agrees with the reference") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  const bool relu = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  for (const NormCase& of : kCases) {
    DYNAMIC_SECTION(of.what << ", threads " << threads << ", relu " << relu << ", in place " << in_place) {
      for (const Arithmetic& in : tensor_types(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, relu, in.dtype);
        run.replayed = true;
        run.in_place = in_place;
        const BatchNormReference batch =
            batch_norm(of.input, run.input_values, run.parameters[0], run.parameters[1], double{kEpsilon});
        Values arriving = run.output_gradient;
        for (std::size_t e = 0; relu && e < arriving.size(); ++e) {
          if (batch.output[e] <= 0.0) arriving[e] = 0.0;
        }
        const LinearGradients gradients =
            batch_norm_gradients(of.input, run.input_values, run.parameters[0], double{kEpsilon}, arriving);

        const OperatorRun result = run_operator(*device, run, {.threads = threads});
        CHECK(relative_error(result.output, relu ? relu_of(batch.output) : batch.output) < in.tolerance);
        CHECK(relative_error(result.input_gradient, gradients.input) < in.tolerance);
        CHECK(relative_error(result.parameter_gradients.at(0), gradients.weights) < kSumTolerance);
        CHECK(relative_error(result.parameter_gradients.at(1), gradients.bias) < kSumTolerance);
        CHECK(relative_error(result.parameter_gradients.at(2), batch.mean) < kSumTolerance);
        CHECK(relative_error(result.parameter_gradients.at(3), batch.unbiased_variance) < kSumTolerance);
        CHECK(result.padding_is_zero);
      }
    }
  }
}

TEST_CASE("batch norm of blocked images gives the same bits for any number of threads") {
  const auto device = open_test_device();
  for (const NormCase& of : kCases) {
    if (!of.native || of.input.rank() != 4) continue;
    for (const Arithmetic& in : tensor_types(*device)) {
      CAPTURE(of.what, in.name);
      const OperatorCase run = make_case(*device, of, true, in.dtype);
      // oneDNN's kernel runs for other layouts; with AMX its convolutions write bfloat16 channels last.
      const bool is_blocked =
          device->is_cuda() || engine::cpu::blocked_images(engine::cpu::descriptor(run.input)).has_value();
      CHECK((is_blocked || in.dtype == DType::kBFloat16));
      if (!is_blocked) continue;
      const OperatorRun one = run_operator(*device, run, {.threads = 1});
      const OperatorRun three = run_operator(*device, run, {.threads = 3});
      CHECK(one.output == three.output);
      CHECK(one.input_gradient == three.input_gradient);
      CHECK(one.parameter_gradients == three.parameter_gradients);
    }
  }
}

// `alike`: the addend has the input's layout; otherwise it has canonical order.
OperatorCase make_sum_case(Device& device, const NormCase& of, bool alike, DType dtype) {
  OperatorCase result = make_case(device, of, true, dtype);
  const engine::Layout addend = alike ? result.input : device.plain_layout(of.input, DType::kFloat32);
  result.others.push_back({addend, random_values(of.input.elements(), 7, alike ? dtype : DType::kFloat32)});
  std::get<BatchNormSpec>(result.spec).addend = addend;
  return result;
}

Values plus(Values a, const Values& b) {
  std::ranges::transform(a, b, a.begin(), std::plus());
  return a;
}

TEST_CASE("batch norm with an addend and ReLU agrees with the reference") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  const bool alike = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  for (const NormCase& of : kCases) {
    DYNAMIC_SECTION(of.what << ", threads " << threads << ", alike " << alike << ", in place " << in_place) {
      for (const Arithmetic& in : tensor_types(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_sum_case(*device, of, alike, in.dtype);
        run.replayed = true;
        run.in_place = in_place;
        const BatchNormReference batch =
            batch_norm(of.input, run.input_values, run.parameters[0], run.parameters[1], double{kEpsilon});
        const Values sum = plus(batch.output, representable(run.others[0].values, in.dtype));
        const OperatorRun result = run_operator(*device, run, {.threads = threads});
        CHECK(relative_error(result.output, relu_of(sum)) < in.tolerance);
        // ReLU's gradient depends on the rounded output.
        Values arriving = run.output_gradient;
        for (std::size_t e = 0; e < arriving.size(); ++e) {
          if (result.output[e] <= 0.0F) arriving[e] = 0.0;
        }
        const LinearGradients gradients =
            batch_norm_gradients(of.input, run.input_values, run.parameters[0], double{kEpsilon}, arriving);
        CHECK(relative_error(result.input_gradient, gradients.input) < in.tolerance);
        CHECK(relative_error(result.other_gradients.at(0), arriving) < 1e-9);
        CHECK(relative_error(result.parameter_gradients.at(0), gradients.weights) < kSumTolerance);
        CHECK(relative_error(result.parameter_gradients.at(1), gradients.bias) < kSumTolerance);
        CHECK(relative_error(result.parameter_gradients.at(2), batch.mean) < kSumTolerance);
        CHECK(relative_error(result.parameter_gradients.at(3), batch.unbiased_variance) < kSumTolerance);
        CHECK(result.padding_is_zero);

        run.replayed = false;  // in place, the second run would read the first one's output
        const Values inferred = batch_norm_by(of.input, run.input_values, run.parameters[0], run.parameters[1],
                                              run.parameters[2], run.parameters[3], double{kEpsilon});
        const OperatorRun inference =
            run_operator(*device, run, {.mode = OperatorMode::kInference, .threads = threads});
        CHECK(relative_error(inference.output, relu_of(plus(inferred, representable(run.others[0].values, in.dtype)))) <
              in.tolerance);
        CHECK(inference.padding_is_zero);
      }
    }
  }
}

TEST_CASE("batch norm with an addend omits gradients that are not requested") {
  const auto device = open_test_device();
  for (const NormCase& of : kCases) {
    for (const bool alike : {false, true}) {
      CAPTURE(of.what, alike);
      const OperatorCase run = make_sum_case(*device, of, alike, DType::kFloat32);
      const OperatorRun both = run_operator(*device, run, {});
      const OperatorRun first = run_operator(*device, run, {.no_gradient = {false, true}});
      CHECK(first.input_gradient == both.input_gradient);
      CHECK(first.parameter_gradients == both.parameter_gradients);
      const OperatorRun second = run_operator(*device, run, {.no_gradient = {true, false}});
      CHECK(second.other_gradients == both.other_gradients);
      CHECK(second.parameter_gradients == both.parameter_gradients);
    }
  }
}

TEST_CASE("batch norm at inference uses the running statistics") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  const bool relu = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  for (const NormCase& of : kCases) {
    DYNAMIC_SECTION(of.what << ", threads " << threads << ", relu " << relu << ", in place " << in_place) {
      for (const Arithmetic& in : tensor_types(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, relu, in.dtype);
        run.in_place = in_place;
        const Values expected = batch_norm_by(of.input, run.input_values, run.parameters[0], run.parameters[1],
                                              run.parameters[2], run.parameters[3], double{kEpsilon});
        const OperatorRun result = run_operator(*device, run, {.mode = OperatorMode::kInference, .threads = threads});
        CHECK(relative_error(result.output, relu ? relu_of(expected) : expected) < in.tolerance);
        CHECK(result.padding_is_zero);
        CHECK(device->prepare(run.spec, {.mode = OperatorMode::kInference})->traits().saved_bytes == 0);
      }
    }
  }
}

TEST_CASE("batch norm without an input gradient has the same parameter gradients") {
  const auto device = open_test_device();
  for (const NormCase& of : kCases) {
    CAPTURE(of.what);
    const OperatorCase run = make_case(*device, of, true, DType::kFloat32);
    const OperatorRun without = run_operator(*device, run, {.input_gradient = false});
    CHECK(without.input_gradient.empty());
    CHECK(without.parameter_gradients == run_operator(*device, run, {}).parameter_gradients);
  }
}

// With sums of squares the variance would lose all digits.
TEST_CASE("batch norm measures a small variance of numbers far from zero") {
  const auto device = open_test_device();
  const NormCase of{"", {16, 4, 16, 16}, true};
  OperatorCase run = make_case(*device, of, false, DType::kFloat32);
  for (double& value : run.input_values) value = 1000.0 + 10.0 * (value - 2.0);
  run.input_values = representable(run.input_values, DType::kFloat32);
  const BatchNormReference batch =
      batch_norm(of.input, run.input_values, run.parameters[0], run.parameters[1], double{kEpsilon});
  const OperatorRun result = run_operator(*device, run, {});
  CHECK(relative_error(result.parameter_gradients.at(2), batch.mean) < 1e-6);
  CHECK(relative_error(result.parameter_gradients.at(3), batch.unbiased_variance) < 1e-4);
  CHECK(relative_error(result.output, batch.output) < 1e-4);
}

TEST_CASE("batch norm with one number per channel is refused in training but not at inference") {
  const auto device = open_test_device();
  const BatchNormSpec spec{device->plain_layout({1, 8}, DType::kFloat32)};
  CHECK_THROWS_WITH(device->prepare(spec, {}), ContainsSubstring("only one number of each channel"));
  CHECK_NOTHROW(device->prepare(spec, {.mode = OperatorMode::kInference}));
}

}  // namespace
}  // namespace arbalest::tests
