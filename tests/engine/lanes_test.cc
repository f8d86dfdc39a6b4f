// Images whose examples are in lanes: the kernels of every instruction set, and which operators choose and keep this
// layout.
#include "engine/cpu/lanes/lanes.h"

#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/cpu/lanes/direct_convolution.h"
#include "engine/cpu/onednn/layout.h"
#include "tests/engine/emulated_kernels.h"
#include "tests/engine/lane_tensors.h"
#include "tests/engine/operator_run.h"
#include "tests/support/amx.h"
#include "tests/support/catch.h"
#include "tests/support/sanitized.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

using engine::BFloat16;
using engine::Conv2dSpec;
using engine::Device;
using engine::DType;
using engine::Layout;
using engine::OperatorMode;
using engine::Pool2dSpec;
using engine::PoolKind;
using engine::Shape;
using engine::Window;
using engine::cpu::kLanes;
using engine::cpu::LaneConvolution;
using engine::cpu::LaneKernels;
using engine::cpu::LaneUnit;
using engine::cpu::lies_in_lanes;

struct Case {
  const char* what;
  Shape input;
  std::int64_t filters;
  Window window;
};

const Case kCases[] = {
    {"LeNet conv1", {32, 1, 28, 28}, 20, {{5, 5}, {1, 1}}},
    {"LeNet conv2, a block without a partner", {48, 20, 12, 12}, 50, {{5, 5}, {1, 1}}},
    {"one filter", {16, 3, 5, 4}, 1, {{2, 3}, {1, 1}}},
    {"strides", {32, 7, 11, 9}, 17, {{3, 2}, {2, 3}}},
    {"strides, rows are even", {32, 7, 11, 9}, 17, {{3, 2}, {1, 2}}},
    {"strides between rows that are even", {16, 5, 9, 7}, 7, {{3, 2}, {2, 1}}},
    {"stride above the kernel", {16, 2, 9, 11}, 6, {{2, 1}, {3, 4}}},
    {"window as large as the image", {16, 4, 8, 8}, 27, {{8, 8}, {1, 1}}},
    {"more rows, and channels, than the first-level cache holds", {16, 12, 21, 70}, 9, {{5, 3}, {2, 2}}},
    {"padding, more blocks than are correlated at once", {112, 16, 16, 16}, 16, {{3, 3}, {1, 1}, {1, 1}}},
    {"padding and strides", {32, 18, 9, 10}, 21, {{5, 3}, {2, 2}, {2, 1}}},
    {"more padding at one side, and more than the kernel reads", {16, 3, 4, 6}, 5, {{3, 3}, {1, 2}, {3, 1}, {0, 2}}},
    {"more padding above and to the left", {16, 3, 5, 6}, 5, {{3, 3}, {1, 2}, {2, 1}, {-2, -1}}},
    {"one channel, padding", {16, 1, 6, 6}, 4, {{3, 3}, {1, 1}, {1, 1}}},
    {"one channel, an even kernel, strides", {16, 1, 9, 10}, 4, {{3, 4}, {1, 2}}},
    {"one by one", {32, 14, 3, 3}, 13, {{1, 1}, {1, 1}}},
};

// Returns the kernels that this processor runs, and the emulated ones.
std::vector<const LaneKernels*> all_kernels() {
  std::vector<const LaneKernels*> kernels{&engine::cpu::kAvx2LaneKernels, &engine::cpu::kEmulatedLaneKernels};
  if (&engine::cpu::lane_kernels() != kernels[0]) kernels.push_back(&engine::cpu::lane_kernels());
  if (const LaneKernels* halves = engine::cpu::bfloat16_lane_kernels()) kernels.push_back(halves);
  return kernels;
}

// Returns an operand for the kernels: the tensor itself or, for bfloat16, `units` units packed by `pack`.
template <typename Pack>
Tensor<float> factor(const Tensor<float>& tensor, std::int64_t /*units*/, const Pack& /*pack*/) {
  return tensor;
}
template <typename Pack>
Tensor<BFloat16> factor(Tensor<BFloat16> tensor, std::int64_t units, const Pack& pack) {
  Tensor<BFloat16> packed(2 * units);
  pack(tensor.data(), packed.units());
  return packed;
}

struct Results {
  Floats output, rectified, input_gradient, weights_gradient, bias_gradient;
  bool operator==(const Results&) const = default;
};

// weights_gradient in the kernels' order: [channels, taps, filters].
template <typename T>
Results run(const Case& of, const LaneKernels& kernels, int threads, const Values& input, const Values& weights,
            const Values& bias, const Values& output_gradient) {
  const Shape output = conv2d_shape(of.input, of.filters, of.window);
  const std::int64_t channels = of.input[1];
  const std::int64_t taps = of.window.kernel.height * of.window.kernel.width;
  const LaneConvolution convolution(of.input, of.filters, of.window, kernels);
  Tensor<T> x = to_lanes<T>(of.input, input);
  Tensor<T> arriving = to_lanes<T>(output, output_gradient);
  Tensor<T> y(output.elements());
  Tensor<T> leaving(of.input.elements());
  const auto units_of = [](const Shape& shape) { return shape.elements() / shape[1] * ((shape[1] + 1) / 2); };
  Tensor<T> images = factor(x, units_of(of.input),
                            [&](const BFloat16* from, LaneUnit* to) { convolution.pack_input(threads, from, to); });
  Tensor<T> gradients = factor(arriving, units_of(output), [&](const BFloat16* from, LaneUnit* to) {
    convolution.pack_output_gradient(threads, from, to);
  });
  const auto packed_weights = [&](const Floats& values, const LaneConvolution::Planes& planes) {
    const auto plane = static_cast<std::int64_t>(values.size()) / (planes.groups * planes.planes);
    return factor(tensor_of<T>(values), planes.groups * ((planes.planes + 1) / 2) * plane,
                  [&](const BFloat16* from, LaneUnit* to) {
                    engine::cpu::pack_planes(threads, planes.groups, planes.planes, plane, from, to);
                  });
  };
  Tensor<T> by_filter = packed_weights(swapped(weights, of.filters, taps, channels), convolution.forward_planes());
  Tensor<T> by_channel = packed_weights(channels_last(weights, channels, taps), convolution.input_gradient_planes());
  const Floats biases(bias.begin(), bias.end());
  Results results;
  results.weights_gradient.resize(weights.size(), NAN);
  results.bias_gradient.resize(bias.size(), NAN);
  convolution.forward(threads, images.units(), by_filter.units(), biases.data(), false, y.data());
  convolution.input_gradient(threads, gradients.units(), by_channel.units(), leaving.data());
  Tensor<T> padded(convolution.padded_shape().elements());
  convolution.pad(threads, x.units(), padded.units());
  convolution.weights_gradient(threads, padded.units(), arriving.units(), results.weights_gradient.data(),
                               results.bias_gradient.data());
  results.output = from_lanes(output, y);
  convolution.forward(threads, images.units(), by_filter.units(), biases.data(), true, y.data());
  results.rectified = from_lanes(output, y);
  results.input_gradient = from_lanes(of.input, leaving);
  return results;
}

TEST_CASE("the kernels of every instruction set agree with the reference, for every number of threads") {
  for (const Case& of : kCases) {
    const std::int64_t outputs = conv2d_shape(of.input, of.filters, of.window).elements();
    if (is_too_long(outputs * of.input[1] * of.window.kernel.height * of.window.kernel.width)) continue;
    for (const LaneKernels* kernels : all_kernels()) {
      const bool halves = kernels->elements == 2;
      const bool is_emulated = kernels == &engine::cpu::kEmulatedLaneKernels;
      DYNAMIC_SECTION(of.what << ", vectors of " << kernels->vector << (halves ? ", bfloat16" : "")
                              << (is_emulated ? ", emulated" : "")) {
        const std::int64_t channels = of.input[1];
        const std::int64_t taps = of.window.kernel.height * of.window.kernel.width;
        const DType type = halves ? DType::kBFloat16 : DType::kFloat32;
        const double tolerance = halves ? 0x1p-8 : 1e-5;  // of values rounded to `type`; the sums are float32
        const Values input = random_values(of.input.elements(), 1, type);
        const Values weights = random_values(of.filters * channels * taps, 2, type);
        const Values bias = random_values(of.filters, 3);
        const Values arriving = random_values(conv2d_shape(of.input, of.filters, of.window).elements(), 4, type);
        const Values output = conv2d(of.input, input, weights, bias, of.filters, of.window);
        const LinearGradients gradients = conv2d_gradients(of.input, input, weights, of.filters, of.window, arriving);
        const auto run_with = [&](int threads) {
          return halves ? run<BFloat16>(of, *kernels, threads, input, weights, bias, arriving)
                        : run<float>(of, *kernels, threads, input, weights, bias, arriving);
        };
        const Results one = run_with(1);
        CHECK(relative_error(one.output, output) < tolerance);
        Floats rectified = one.output;
        for (float& value : rectified) value = std::max(value, 0.0F);
        CHECK(one.rectified == rectified);
        CHECK(relative_error(one.input_gradient, gradients.input) < tolerance);
        const Floats expected = swapped(gradients.weights, of.filters, taps, channels);
        CHECK(relative_error(one.weights_gradient, Values(expected.begin(), expected.end())) < 1e-5);
        CHECK(relative_error(one.bias_gradient, gradients.bias) < 1e-4);  // few sums, which may cancel
        CHECK(run_with(3) == one);
      }
    }
  }
}

std::vector<DType> types_in_lanes() {
  std::vector<DType> types{DType::kFloat32};
  if (engine::cpu::bfloat16_lane_kernels() != nullptr) types.push_back(DType::kBFloat16);
  return types;
}

Layout plain(Device& device, const Shape& shape) { return device.plain_layout(shape, DType::kFloat32); }

TEST_CASE("LeNet's convolutions and poolings keep examples in lanes without copies in between") {
  const auto device = open_test_device();
  const auto mode = GENERATE(OperatorMode::kTraining, OperatorMode::kInference);
  const DType type = GENERATE(from_range(types_in_lanes()));
  const bool halves = type == DType::kBFloat16;
  const auto prepare = [&](const engine::OperatorSpec& spec) {
    const engine::Precision precision = halves ? engine::Precision::kBFloat16 : engine::Precision::kFloat32;
    const auto training = device->prepare(spec, {.precision = precision})->traits();
    if (mode == OperatorMode::kTraining) return training;
    // Evaluation prepares the operator with the layouts of training.
    return device->prepare(spec, {.mode = mode, .parameters = training.parameters, .precision = precision})->traits();
  };
  const auto conv1 = prepare(Conv2dSpec{plain(*device, {32, 1, 28, 28}), 20, {{5, 5}, {1, 1}}});
  const auto pool1 = prepare(Pool2dSpec{conv1.output, PoolKind::kMax, {{2, 2}, {2, 2}}});
  const auto conv2 = prepare(Conv2dSpec{pool1.output, 50, {{5, 5}, {1, 1}}});
  const auto relu = prepare(engine::ActivationSpec{conv2.output, engine::ActivationKind::kRelu});
  const auto pool2 = prepare(Pool2dSpec{relu.output, PoolKind::kMax, {{2, 2}, {2, 2}}});
  for (const auto* traits : {&conv1, &pool1, &conv2, &relu, &pool2}) {
    CHECK(lies_in_lanes(traits->output));
    CHECK(traits->output.dtype() == type);
  }
  for (const auto* traits : {&pool1, &relu, &pool2}) CHECK(traits->scratch_bytes == 0);
  CHECK(conv2.saved_bytes == 0);
  CHECK(conv2.backward_reads_inputs == (mode == OperatorMode::kTraining));
  constexpr std::size_t kWeightBytes = 50 * 20 * 5 * 5 * sizeof(float);
  CHECK(conv2.parameters[0].bytes() == kWeightBytes);  // no padding
  if (halves) return;
  // In training the scratch memory holds the weights in another order, for the gradient of the input.
  CHECK(conv2.scratch_bytes == (mode == OperatorMode::kTraining ? engine::aligned(kWeightBytes) : 0));
}

TEST_CASE("oneDNN computes convolutions that are fast in oneDNN, or that lane kernels do not support") {
  const auto device = open_test_device();
  const auto in_lanes = [&](const Shape& input, std::int64_t filters, const Window& window) {
    return lies_in_lanes(device->prepare(Conv2dSpec{plain(*device, input), filters, window}, {})->traits().output);
  };
  const Window window{{5, 5}, {1, 1}};
  CHECK(in_lanes({16, 20, 12, 12}, 50, window));
  CHECK_FALSE(in_lanes({20, 20, 12, 12}, 50, window));
  CHECK_FALSE(in_lanes({16, 20, 12, 12}, 50, {{5, 5}, {1, 1}, {2, 2}}));
  CHECK_FALSE(in_lanes({16, 20, 12, 12}, 50, {{9, 8}, {1, 1}}));
  CHECK_FALSE(in_lanes({16, 20, 12, 12}, 50, {{1, 1}, {1, 1}}));
  CHECK_FALSE(in_lanes({16, 16, 12, 12}, 32, window));
  CHECK_FALSE(in_lanes({16, 3, 12, 12}, 64, window));
}

TEST_CASE("a residual net's layers keep bfloat16 examples in lanes without copies in between") {
  if (engine::cpu::bfloat16_lane_kernels() == nullptr) skip_test("it takes a processor with avx512_bf16");
  skip_with_amx();
  const auto device = open_test_device();
  const auto prepare = [&](const engine::OperatorSpec& spec) {
    return device->prepare(spec, {.precision = engine::Precision::kBFloat16})->traits();
  };
  const Window window{{3, 3}, {1, 1}, {1, 1}};
  const auto stem = prepare(Conv2dSpec{plain(*device, {32, 3, 32, 32}), 16, window, false});
  const auto norm = prepare(engine::BatchNormSpec{stem.output, 1e-5F, true, stem.output});
  const auto down = prepare(Conv2dSpec{norm.output, 64, {{3, 3}, {2, 2}, {1, 1}}, false});
  const auto shortcut = prepare(engine::PaddedShortcutSpec{norm.output, 64, 2});
  for (const auto* traits : {&stem, &norm, &down, &shortcut}) CHECK(lies_in_lanes(traits->output));
  CHECK(shortcut.output == down.output);
  CHECK(shortcut.scratch_bytes == 0);
  CHECK(down.saved_bytes == 0);
  const auto in_lanes = [&](const Shape& input, std::int64_t filters) {
    return lies_in_lanes(prepare(Conv2dSpec{plain(*device, input), filters, window}).output);
  };
  CHECK_FALSE(in_lanes({16, 16, 32, 32}, 16));
  CHECK_FALSE(in_lanes({32, 16, 33, 32}, 16));
  CHECK_FALSE(in_lanes({32, 65, 8, 8}, 64));
  CHECK_FALSE(in_lanes({32, 64, 8, 8}, 65));
}

TEST_CASE(
    "bfloat16 images in lanes stay in lanes up to 256 channels, and other images are not copied to lanes for this") {
  if (engine::cpu::bfloat16_lane_kernels() == nullptr) skip_test("it takes a processor with avx512_bf16");
  skip_with_amx();
  const auto device = open_test_device();
  const auto in_lanes = [&](const Layout& input, std::int64_t filters, const Window& window) {
    const engine::PrepareOptions options{.precision = engine::Precision::kBFloat16};
    return lies_in_lanes(device->prepare(Conv2dSpec{input, filters, window}, options)->traits().output);
  };
  const auto lanes = [](const Shape& shape) {
    return engine::cpu::make_layout(engine::cpu::lane_descriptor(shape, DType::kBFloat16));
  };
  const Window window{{3, 3}, {1, 1}, {1, 1}};
  CHECK(in_lanes(lanes({16, 256, 8, 8}), 256, window));
  CHECK(in_lanes(lanes({16, 64, 36, 36}), 128, window));
  CHECK_FALSE(in_lanes(plain(*device, {16, 256, 8, 8}), 256, window));
  CHECK_FALSE(in_lanes(lanes({16, 257, 8, 8}), 256, window));
  CHECK_FALSE(in_lanes(lanes({16, 256, 8, 8}), 257, window));
  CHECK_FALSE(in_lanes(lanes({16, 128, 8, 6}), 128, window));
  CHECK_FALSE(in_lanes(lanes({16, 128, 10, 9}), 128, window));
  CHECK_FALSE(in_lanes(lanes({32, 128, 8, 8}), 128, {{3, 3}, {2, 2}, {1, 1}}));
}

TEST_CASE("pooling with overlapping windows sums gradients in float32, so bfloat16 images leave the lanes") {
  const auto device = open_test_device();
  for (const DType type : types_in_lanes()) {
    const Layout images = native_image_layout(*device, {16, 5, 9, 9}, type);
    REQUIRE(lies_in_lanes(images));
    CHECK(engine::cpu::keeps_lanes({images, PoolKind::kMax, {{3, 3}, {3, 3}}}));
    CHECK(engine::cpu::keeps_lanes({images, PoolKind::kMax, {{5, 5}, {1, 1}}}) == (type == DType::kFloat32));
  }
}

TEST_CASE("native_image_layout gives lanes for the shapes in other tests") {
  const auto device = open_test_device();
  for (const Shape& shape : {Shape{48, 5, 7, 3}, Shape{32, 5, 3, 4}, Shape{32, 5, 7, 6}, Shape{16, 3, 4, 4}}) {
    for (const DType type : types_in_lanes()) CHECK(lies_in_lanes(native_image_layout(*device, shape, type)));
  }
}

TEST_CASE("an operator without lane kernels copies images from lanes") {
  const auto device = open_test_device();
  const Shape shape{16, 5, 6, 6};
  OperatorCase of;
  of.input = native_image_layout(*device, shape);
  REQUIRE(lies_in_lanes(of.input));
  of.spec = Pool2dSpec{of.input, PoolKind::kAverage, {{3, 3}, {2, 2}, {1, 1}}};
  of.input_values = random_values(shape.elements(), 1);
  const Window& window = std::get<Pool2dSpec>(of.spec).window;
  of.output_gradient = random_values(conv2d_shape(shape, 5, window).elements(), 2);
  const OperatorRun run = run_operator(*device, of, {});
  CHECK(relative_error(run.output, pool2d(shape, of.input_values, PoolKind::kAverage, window)) < 1e-5);
  CHECK(relative_error(run.input_gradient,
                       pool2d_gradient(shape, of.input_values, PoolKind::kAverage, window, of.output_gradient)) < 1e-5);
}

TEST_CASE("a convolution reads parameters in the layout of the other kind of kernel") {
  const auto device = open_test_device();
  const auto [trained, evaluated] = GENERATE(std::pair{32, 20}, std::pair{20, 32});
  const std::vector<Arithmetic> types = tensor_types(*device);
  const Arithmetic in = types.at(GENERATE(0U, 1U) % types.size());
  const Window window{{3, 3}, {1, 1}};
  const auto spec_of = [&](std::int64_t batch) { return Conv2dSpec{plain(*device, {batch, 20, 6, 6}), 18, window}; };
  const auto parameters = device->prepare(spec_of(trained), {.precision = in.precision})->traits().parameters;
  OperatorCase of;
  of.spec = spec_of(evaluated);
  of.input = spec_of(evaluated).input;
  of.input_values = random_values(of.input.shape().elements(), 1, in.dtype);
  of.parameters = {random_values(18 * 20 * 9, 2, in.dtype), random_values(18, 3)};
  of.output_gradient = random_values(conv2d_shape(of.input.shape(), 18, window).elements(), 4, in.dtype);
  const OperatorRun run = run_operator(*device, of, {.parameters = parameters, .precision = in.precision});
  CAPTURE(in.name, trained, evaluated);
  CHECK(relative_error(run.output, conv2d(of.input.shape(), of.input_values, of.parameters[0], of.parameters[1], 18,
                                          window)) < in.tolerance);
  const LinearGradients gradients =
      conv2d_gradients(of.input.shape(), of.input_values, of.parameters[0], 18, window, of.output_gradient);
  CHECK(relative_error(run.parameter_gradients[0], gradients.weights) < 1e-5);
  CHECK(relative_error(run.input_gradient, gradients.input) < in.tolerance);
  CHECK(run.padding_is_zero);
}

TEST_CASE("a convolution in lanes with a ReLU keeps NaN") {
  const auto device = open_test_device();
  for (const DType type : types_in_lanes()) {
    OperatorCase of;
    const Layout images = device->plain_layout({16, 1, 3, 3}, type);
    of.spec = Conv2dSpec{
        .input = images, .filters = 2, .window = {{2, 2}, {1, 1}}, .activation = engine::ActivationKind::kRelu};
    of.input = images;
    of.input_values.assign(16 * 9, -1.0);
    of.input_values[9 + 4] = NAN;  // in example 1 and in each of its windows
    of.parameters = {Values(2 * 4, 1.0), Values(2, 0.0)};
    const engine::Precision precision =
        type == DType::kBFloat16 ? engine::Precision::kBFloat16 : engine::Precision::kFloat32;
    const engine::PrepareOptions options{.mode = OperatorMode::kInference, .precision = precision};
    REQUIRE(lies_in_lanes(device->prepare(of.spec, options)->traits().output));
    const OperatorRun run = run_operator(*device, of, options);
    for (std::size_t i = 0; i < run.output.size(); ++i) {
      CAPTURE(i);
      CHECK((i / 8 == 1 ? std::isnan(run.output[i]) : run.output[i] == 0.0F));
    }
  }
}

TEST_CASE("max pooling in lanes: NaN is the maximum, and of equal values the first one") {
  const auto device = open_test_device();
  const Shape shape{16, 1, 2, 2};
  OperatorCase of;
  of.input = native_image_layout(*device, shape, GENERATE(from_range(types_in_lanes())));
  REQUIRE(lies_in_lanes(of.input));
  of.spec = Pool2dSpec{of.input, PoolKind::kMax, {{2, 2}, {2, 2}}};
  of.input_values.assign(64, -1.0);
  of.input_values[4 + 1] = NAN;                             // example 1
  of.input_values[8] = of.input_values[8 + 1] = -HUGE_VAL;  // example 2
  of.input_values[8 + 2] = of.input_values[8 + 3] = -HUGE_VAL;
  of.output_gradient.assign(16, 3.0);
  const OperatorRun run = run_operator(*device, of, {});
  CHECK(run.output[0] == -1.0F);
  CHECK(std::isnan(run.output[1]));
  CHECK(run.output[2] == -HUGE_VALF);
  const auto of_example = [&](std::ptrdiff_t n) {
    return Floats(run.input_gradient.begin() + 4 * n, run.input_gradient.begin() + 4 * n + 4);
  };
  CHECK(of_example(0) == Floats{3, 0, 0, 0});
  CHECK(of_example(1) == Floats{0, 3, 0, 0});
  CHECK(of_example(2) == Floats{3, 0, 0, 0});
}

}  // namespace
}  // namespace arbalest::tests
