// Convolutions at inference whose weights have no given layout, compared with the reference.

#include "engine/cpu/winograd/blocked_convolution.h"
#include "engine/cpu/winograd/weights_layout.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::Conv2dSpec;
using engine::DType;
using engine::OperatorMode;
using engine::Shape;
using engine::Window;

struct Case {
  const char* what;
  Shape input;
  std::int64_t filters;
  Window window;
  bool native_input = true;
  std::int64_t groups = 1;
};

// Returns the layout in which convolutions leave images at inference: oneDNN may put channels last.
engine::Layout inference_layout(engine::Device& device, const Shape& shape) {
  const engine::Layout input = device.plain_layout({shape[0], 3, shape[2] + 1, shape[3] + 1}, DType::kFloat32);
  const Conv2dSpec convolution{input, shape[1], {{2, 2}, {1, 1}}, false};
  return device.prepare(convolution, {.mode = OperatorMode::kInference})->traits().output;
}

const Window kThree{{3, 3}, {1, 1}, {1, 1}};

const Case kCases[] = {
    {"sixteen channels and filters", {1, 16, 9, 6}, 16, kThree},
    {"the same, canonical order, not square", {3, 16, 7, 8}, 16, {{3, 5}, {1, 1}, {1, 2}}, false},
    {"sixteen channels and filters, stride two", {2, 16, 9, 8}, 16, {{3, 3}, {2, 2}, {1, 1}}},
    {"three channels", {2, 3, 8, 8}, 16, kThree, false},
    {"channels of no whole block", {2, 20, 9, 7}, 50, {{5, 5}, {1, 1}}},
    {"five by five, padded", {1, 32, 10, 9}, 16, {{5, 5}, {1, 1}, {2, 2}}},
    {"three by three, no padding", {2, 16, 9, 10}, 32, {{3, 3}, {1, 1}}},
    {"three by three, one more zero below and to the right", {2, 16, 9, 9}, 48, {{3, 3}, {1, 1}, {1, 1}, {1, 1}}},
    {"three by three, much padding", {1, 16, 3, 2}, 16, {{3, 3}, {1, 1}, {3, 3}}},
    {"seven blocks of filters, the last with one filter", {1, 17, 6, 6}, 97, kThree},
    {"an image smaller than a tile", {3, 16, 2, 1}, 16, kThree},
    {"one filter", {1, 20, 7, 7}, 1, kThree},
    {"32 channels, many pixels", {2, 32, 48, 48}, 48, kThree},
    {"32 channels, few pixels", {1, 32, 6, 5}, 32, kThree},
    {"64 channels, many pixels", {2, 64, 23, 23}, 80, kThree},
    {"64 channels, few pixels", {1, 64, 8, 8}, 64, kThree},
    {"one by one", {2, 64, 8, 8}, 32, {{1, 1}, {1, 1}}},
    {"one by one, stride two", {2, 16, 8, 8}, 32, {{1, 1}, {2, 2}}},
    {"one more zero below and to the right", {3, 16, 8, 8}, 32, {{3, 3}, {2, 2}, {0, 0}, {1, 1}}},
    {"two groups", {2, 96, 9, 9}, 64, {{5, 5}, {1, 1}, {2, 2}}, true, 2},
    {"depthwise", {3, 32, 9, 7}, 32, kThree, true, 32},
    {"sixteen examples, an odd number of channels", {16, 5, 9, 8}, 7, {{3, 2}, {2, 1}}},
};

// Checks one case with an activation, or without.
void check(engine::Device& device, const Case& of, bool bias, std::optional<engine::ActivationFunction> f, int threads,
           const engine::Layout& input) {
  OperatorCase run;
  run.replayed = true;
  run.input = input;
  const Conv2dSpec spec{run.input, of.filters, of.window, bias, f, of.groups};
  run.spec = spec;
  run.input_values = random_values(of.input.elements(), 1);
  run.parameters = {random_values(weights_shape(spec).elements(), 2)};
  if (bias) run.parameters.push_back(random_values(of.filters, 3));
  Values expected = conv2d(of.input, run.input_values, run.parameters[0], bias ? run.parameters[1] : Values{},
                           of.filters, of.window, of.groups);
  if (f) expected = activation(expected, *f);
  const OperatorRun result = run_operator(device, run, {.mode = OperatorMode::kInference, .threads = threads});
  CHECK(relative_error(result.output, expected) < 1e-5);
  CHECK(result.padding_is_zero);
}

TEST_CASE("conv2d at inference agrees with the reference, with layouts of weights of its own") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  for (const Case& of : kCases) {
    DYNAMIC_SECTION(of.what << ", threads " << threads) {
      for (const bool bias : {false, true}) {
        CAPTURE(bias);
        const auto canonical = device->plain_layout(of.input, DType::kFloat32);
        const auto input = of.native_input ? native_image_layout(*device, of.input) : canonical;
        check(*device, of, bias, {}, threads, input);
        check(*device, of, bias, {}, threads, inference_layout(*device, of.input));
        check(*device, of, bias, engine::ActivationKind::kRelu, threads, input);
        check(*device, of, bias, engine::ActivationKind::kTanh, threads, input);
      }
    }
  }
}

TEST_CASE("conv2d at inference transforms its weights where that is faster") {
  const auto device = open_test_device();
  const auto is_transformed = [&](const Shape& images, std::int64_t filters, const Window& window) {
    const Conv2dSpec spec{native_image_layout(*device, images), filters, window, false};
    const auto convolution = device->prepare(spec, {.mode = OperatorMode::kInference});
    return engine::cpu::is_winograd_weights(convolution->traits().parameters[0]);
  };
  const Conv2dSpec served{native_image_layout(*device, {1, 32, 16, 16}), 32, kThree, false};
  CHECK(is_transformed({1, 32, 16, 16}, 32, kThree) == engine::cpu::BlockedWinograd::fits(served));
  CHECK_FALSE(is_transformed({1, 256, 14, 14}, 256, kThree));
  CHECK_FALSE(is_transformed({1, 32, 16, 16}, 32, {{3, 3}, {2, 2}, {1, 1}}));
  CHECK_FALSE(is_transformed({1, 32, 16, 16}, 32, {{1, 1}, {1, 1}}));
}

}  // namespace
}  // namespace arbalest::tests
