// Convolutions and dense layers, compared with the references.
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::Conv2dSpec;
using engine::DenseSpec;
using engine::DType;
using engine::Layout;
using engine::OperatorMode;
using engine::PrepareOptions;
using engine::Shape;
using engine::Window;

struct ConvCase {
  const char* what;
  Shape input;
  std::int64_t filters;
  Window window;
  bool native_input;
  bool bias = true;
  std::int64_t groups = 1;
};

const ConvCase kConvolutions[] = {
    {"LeNet conv1", {32, 1, 28, 28}, 20, {{5, 5}, {1, 1}, {0, 0}}, false},
    {"LeNet conv2", {32, 20, 12, 12}, 50, {{5, 5}, {1, 1}, {0, 0}}, true},
    {"three channels, stride and padding", {5, 3, 11, 9}, 20, {{3, 3}, {2, 2}, {1, 1}}, false},
    {"one example, one filter, no bias", {1, 20, 7, 7}, 1, {{3, 3}, {1, 1}, {1, 1}}, true, false},
    {"many channels in canonical order", {5, 50, 6, 6}, 20, {{3, 3}, {1, 1}, {1, 1}}, false},
    {"one channel as a convolution left it", {5, 1, 8, 8}, 3, {{3, 3}, {1, 1}, {0, 0}}, true},
    {"not square", {4, 16, 9, 6}, 32, {{3, 1}, {2, 1}, {1, 0}}, true},
    {"one by one, stride two", {4, 16, 8, 8}, 32, {{1, 1}, {2, 2}, {0, 0}}, true, false},
    {"window as large as the image", {3, 4, 5, 5}, 7, {{5, 5}, {1, 1}, {0, 0}}, false},
    {"a single number", {1, 1, 1, 1}, 1, {{1, 1}, {1, 1}, {0, 0}}, false},
    {"one pixel, 17 channels", {1, 17, 1, 1}, 33, {{1, 1}, {1, 1}, {0, 0}}, true},
    {"one pixel in canonical order", {6, 17, 1, 1}, 33, {{1, 1}, {1, 1}, {0, 0}}, false, false},
    {"one pixel in the middle of its window", {3, 5, 1, 1}, 18, {{3, 3}, {1, 1}, {1, 1}}, true},
    {"images of one row", {2, 17, 1, 9}, 15, {{1, 3}, {1, 2}, {0, 1}}, true},
    {"images of one column", {2, 3, 9, 1}, 17, {{3, 1}, {2, 1}, {1, 0}}, false},
    {"stride above the kernel", {2, 17, 9, 11}, 33, {{2, 2}, {3, 4}, {0, 0}}, true},
    {"stride above the kernel, canonical order, padded", {1, 3, 10, 7}, 5, {{2, 2}, {4, 3}, {1, 1}}, false},
    {"stride above the image", {2, 19, 4, 4}, 7, {{3, 3}, {8, 8}, {0, 0}}, true},
    {"padding as large as the kernel", {2, 4, 5, 5}, 20, {{1, 1}, {1, 1}, {1, 1}}, true},
    {"sixteen examples", {16, 5, 9, 8}, 7, {{3, 2}, {2, 1}}, true},
    {"48 examples in canonical order, no bias", {48, 1, 6, 5}, 18, {{3, 3}, {1, 1}}, false, false},
    {"32 examples, padding", {32, 5, 6, 7}, 7, {{3, 3}, {1, 1}, {1, 1}}, false},
    {"32 examples, padding, stride", {32, 6, 9, 8}, 18, {{3, 3}, {2, 2}, {1, 1}}, true, false},
    {"32 examples, one more zero below and to the right", {32, 3, 6, 6}, 5, {{3, 2}, {1, 2}, {1, 0}, {1, 1}}, true},
    {"padding above the image", {2, 17, 2, 2}, 3, {{5, 5}, {1, 1}, {3, 3}}, true},
    {"dilated", {3, 16, 12, 9}, 32, {{3, 3}, {1, 1}, {2, 2}, {0, 0}, {2, 2}}, true},
    {"dilated, not square, three channels", {2, 3, 12, 14}, 20, {{3, 2}, {2, 1}, {1, 0}, {0, 0}, {3, 4}}, false},
    {"one more zero below and to the right", {3, 16, 8, 8}, 32, {{3, 3}, {2, 2}, {0, 0}, {1, 1}}, true},
    {"one more zero to the right, three channels", {2, 3, 7, 8}, 20, {{2, 4}, {1, 1}, {0, 1}, {0, 1}}, false},
    {"one more zero below, one channel", {2, 1, 6, 5}, 4, {{4, 1}, {1, 1}, {1, 0}, {1, 0}}, false},
    {"one more zero above and to the left", {3, 16, 8, 8}, 32, {{3, 3}, {2, 2}, {1, 1}, {-1, -1}}, true},
    {"two more zeros above, one more to the right", {2, 3, 7, 8}, 20, {{4, 3}, {1, 1}, {3, 1}, {-2, 1}}, false},
    {"one more zero to the left, one channel", {2, 1, 6, 5}, 4, {{3, 4}, {1, 1}, {1, 2}, {0, -1}}, false},
    {"32 examples, one more zero above and to the left", {32, 3, 6, 6}, 5, {{3, 3}, {1, 2}, {2, 1}, {-1, -1}}, true},
    {"dilated, one more zero", {2, 20, 9, 9}, 7, {{2, 2}, {2, 2}, {1, 1}, {1, 1}, {3, 3}}, true, false},
    {"sixteen channels and filters, as many pixels", {3, 16, 9, 6}, 16, {{3, 3}, {1, 1}, {1, 1}}, true, false},
    {"the same, neither square nor blocked", {3, 16, 7, 8}, 16, {{3, 5}, {1, 1}, {1, 2}}, false, false},
    // From this many pixels on, the CPU convolves by Winograd's method if it has AVX-512:
    {"64 channels, more than 1024 pixels, 4 x 4 do not divide them",
     {2, 64, 23, 23},
     80,
     {{3, 3}, {1, 1}, {1, 1}},
     true},
    {"the same, canonical order, no padding, no bias", {3, 64, 22, 23}, 64, {{3, 3}, {1, 1}, {0, 0}}, false, false},
    {"32 filters, more than 4096 pixels", {4, 48, 33, 32}, 32, {{3, 3}, {1, 1}, {1, 1}}, true, false},
    {"32 filters, one more zero above", {4, 48, 33, 32}, 32, {{3, 3}, {1, 1}, {1, 1}, {-1, 0}}, true, false},
    {"32 channels, more than 512 pixels", {8, 32, 9, 8}, 64, {{3, 3}, {1, 1}, {1, 1}}, true},
    {"two groups of 48 channels", {2, 96, 9, 9}, 64, {{5, 5}, {1, 1}, {2, 2}}, true, true, 2},
    {"two groups of 8 and 16", {3, 16, 7, 7}, 32, {{3, 3}, {1, 1}, {1, 1}}, true, true, 2},
    {"three groups of 5 and 3", {3, 15, 7, 6}, 9, {{3, 3}, {2, 1}, {1, 1}}, true, false, 3},
    {"two groups, canonical order, dilated, one more zero",
     {2, 6, 8, 9},
     10,
     {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {2, 2}},
     false,
     true,
     2},
    {"32 groups of 4", {2, 128, 5, 5}, 128, {{3, 3}, {1, 1}, {1, 1}}, true, false, 32},
    {"one pixel, two groups", {2, 4, 1, 1}, 6, {{1, 1}, {1, 1}, {0, 0}}, true, true, 2},
    {"depthwise", {3, 32, 9, 7}, 32, {{3, 3}, {1, 1}, {1, 1}}, true, true, 32},
    {"depthwise, 17 channels, stride two", {2, 17, 9, 8}, 17, {{3, 3}, {2, 2}, {1, 1}}, true, false, 17},
    {"depthwise, 20 channels, one more zero", {2, 20, 8, 8}, 20, {{3, 3}, {2, 2}, {0, 0}, {1, 1}}, true, true, 20},
    {"depthwise, one more zero above and to the left",
     {2, 20, 8, 8},
     20,
     {{3, 3}, {2, 2}, {1, 1}, {-1, -1}},
     true,
     true,
     20},
    {"depthwise, three channels in canonical order", {2, 3, 6, 6}, 3, {{3, 3}, {1, 1}, {1, 1}}, false, true, 3},
    {"depthwise, dilated", {2, 17, 9, 9}, 17, {{3, 3}, {1, 1}, {2, 2}, {0, 0}, {2, 2}}, true, true, 17},
    {"depthwise, five by five", {2, 24, 9, 9}, 24, {{5, 5}, {1, 1}, {2, 2}}, true, true, 24},
    {"depthwise, padding above the kernel", {1, 16, 5, 5}, 16, {{2, 2}, {1, 1}, {3, 3}}, true, true, 16},
    {"depthwise, one pixel", {1, 17, 1, 1}, 17, {{3, 3}, {1, 1}, {1, 1}}, true, true, 17},
    {"two filters a channel", {2, 16, 6, 6}, 32, {{3, 3}, {1, 1}, {1, 1}}, true, true, 16},
};

// `dtype`: type of all operands except a bias.
std::int64_t operations_of(const ConvCase& of) {
  const std::int64_t outputs = conv2d_shape(of.input, of.filters, of.window).elements();
  return outputs * of.input[1] / of.groups * of.window.kernel.height * of.window.kernel.width;
}

OperatorCase make_case(engine::Device& device, const ConvCase& of, DType dtype = DType::kFloat32) {
  OperatorCase result;
  result.input = of.native_input ? native_image_layout(device, of.input, dtype) : device.plain_layout(of.input, dtype);
  result.spec = Conv2dSpec{result.input, of.filters, of.window, of.bias, {}, of.groups};
  result.input_values = random_values(of.input.elements(), 1, dtype);
  const std::int64_t taps = of.window.kernel.height * of.window.kernel.width;
  result.parameters = {random_values(of.filters * of.input[1] / of.groups * taps, 2, dtype)};
  if (of.bias) result.parameters.push_back(random_values(of.filters, 3));
  result.output_gradient = random_values(conv2d_shape(of.input, of.filters, of.window).elements(), 4, dtype);
  return result;
}

// Sums are float32 in every precision, but their terms may have been rounded.
void check(const OperatorRun& run, const Values& output, const LinearGradients& gradients, bool bias, double tolerance,
           double bias_tolerance = 1e-5) {
  CHECK(relative_error(run.output, output) < tolerance);
  CHECK(relative_error(run.input_gradient, gradients.input) < tolerance);
  CHECK(relative_error(run.parameter_gradients.at(0), gradients.weights) < tolerance);
  if (bias) CHECK(relative_error(run.parameter_gradients.at(1), gradients.bias) < bias_tolerance);
  CHECK(run.padding_is_zero);
}

TEST_CASE("conv2d agrees with the reference") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  for (const ConvCase& of : kConvolutions) {
    if (is_too_long(operations_of(of))) continue;
    DYNAMIC_SECTION(of.what << ", threads " << threads) {
      for (const Arithmetic& in : arithmetics(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, in.dtype);
        run.replayed = true;
        const Values bias = of.bias ? run.parameters[1] : Values{};
        check(run_operator(*device, run, {.threads = threads, .precision = in.precision}),
              conv2d(of.input, run.input_values, run.parameters[0], bias, of.filters, of.window, of.groups),
              conv2d_gradients(of.input, run.input_values, run.parameters[0], of.filters, of.window,
                               run.output_gradient, of.groups),
              of.bias, in.tolerance);
      }
    }
  }
}

TEST_CASE("conv2d without an input gradient has the same weight gradients") {
  const auto device = open_test_device();
  const OperatorCase of = make_case(*device, kConvolutions[0]);
  const OperatorRun with = run_operator(*device, of, {});
  const OperatorRun without = run_operator(*device, of, {.input_gradient = false});
  CHECK(without.input_gradient.empty());
  CHECK(without.parameter_gradients == with.parameter_gradients);
}

TEST_CASE("conv2d at inference reads the training plan's parameters and gives its output") {
  const auto device = open_test_device();
  for (const ConvCase& of : kConvolutions) {
    if (is_too_long(operations_of(of))) continue;
    DYNAMIC_SECTION(of.what) {
      for (const Arithmetic& in : arithmetics(*device)) {
        CAPTURE(in.name);
        const OperatorCase run = make_case(*device, of, in.dtype);
        const PrepareOptions training{.precision = in.precision};
        const auto parameters = device->prepare(run.spec, training)->traits().parameters;
        const PrepareOptions inference{
            .mode = OperatorMode::kInference, .parameters = parameters, .precision = in.precision};
        const auto op = device->prepare(run.spec, inference);
        CHECK(op->traits().parameters == parameters);
        CHECK(op->traits().saved_bytes == 0);
        const OperatorRun trained = run_operator(*device, run, training);
        CHECK(run_operator(*device, run, inference).output == trained.output);
        CHECK(trained.padding_is_zero);
      }
    }
  }
}

TEST_CASE("layers read parameters in any layout, and float32 inputs") {
  const auto device = open_test_device();
  for (const Arithmetic& in : arithmetics(*device)) {
    const auto run_given = [&](OperatorCase& run, const Shape& weights, std::int64_t outputs) {
      run.parameters[0] = representable(run.parameters[0], in.dtype);
      run.input_values = representable(run.input_values, in.dtype);
      run.output_gradient = representable(run.output_gradient, in.dtype);
      return run_operator(*device, run,
                          {.parameters = {device->plain_layout(weights, DType::kFloat32),
                                          device->plain_layout({outputs}, DType::kFloat32)},
                           .precision = in.precision});
    };
    for (const ConvCase& of : kConvolutions) {
      if (is_too_long(operations_of(of))) continue;
      if (!of.bias || (of.input[0] == 32 && of.filters != 50)) continue;
      DYNAMIC_SECTION(of.what << ", " << in.name) {
        OperatorCase run = make_case(*device, of);
        const Shape weights = weights_shape(std::get<Conv2dSpec>(run.spec));
        const OperatorRun result = run_given(run, weights, of.filters);
        check(
            result,
            conv2d(of.input, run.input_values, run.parameters[0], run.parameters[1], of.filters, of.window, of.groups),
            conv2d_gradients(of.input, run.input_values, run.parameters[0], of.filters, of.window, run.output_gradient,
                             of.groups),
            true, in.tolerance);
      }
    }
    DYNAMIC_SECTION("dense, " << in.name) {
      OperatorCase run;
      run.input = device->plain_layout({5, 30}, DType::kFloat32);
      run.spec = DenseSpec{run.input, 20};
      run.input_values = random_values(150, 1);
      run.parameters = {random_values(600, 2), random_values(20, 3)};
      run.output_gradient = random_values(100, 4);
      const OperatorRun result = run_given(run, {20, 30}, 20);
      check(result, dense(5, run.input_values, run.parameters[0], run.parameters[1], 20),
            dense_gradients(5, run.input_values, run.parameters[0], 20, run.output_gradient), true, in.tolerance);
    }
  }
}

struct DenseCase {
  const char* what;
  Shape input;
  std::int64_t units;
  bool native_input;
  bool bias = true;
};

const DenseCase kDenseLayers[] = {
    {"LeNet ip1 after a pooling", {32, 50, 4, 4}, 500, true},
    {"LeNet ip1 in canonical order", {32, 50, 4, 4}, 500, false},
    {"LeNet ip2", {32, 500}, 10, false},
    {"perceptron, first layer", {32, 784}, 128, false},
    {"one example", {1, 37}, 3, false},
    {"one unit, no bias", {5, 20}, 1, false, false},
    {"one feature", {5, 1}, 7, false},
    {"after a global pooling", {5, 20, 1, 1}, 10, true},
    {"a single number", {1, 1}, 1, false},
    {"one example, one pixel, 17 channels", {1, 17, 1, 1}, 33, true},
    {"one example of images of one row", {1, 17, 1, 9}, 5, true},
    {"sixteen examples of images", {16, 5, 3, 2}, 7, true},
};

OperatorCase make_case(engine::Device& device, const DenseCase& of, DType dtype = DType::kFloat32) {
  OperatorCase result;
  result.input = of.native_input ? native_image_layout(device, of.input, dtype) : device.plain_layout(of.input, dtype);
  result.spec = DenseSpec{result.input, of.units, of.bias};
  result.input_values = random_values(of.input.elements(), 1, dtype);
  result.parameters = {random_values(of.units * of.input.elements_per_example(), 2, dtype)};
  if (of.bias) result.parameters.push_back(random_values(of.units, 3));
  result.output_gradient = random_values(of.input[0] * of.units, 4, dtype);
  return result;
}

TEST_CASE("dense agrees with the reference") {
  const auto device = open_test_device();
  const int threads = GENERATE(from_range(thread_counts()));
  for (const DenseCase& of : kDenseLayers) {
    DYNAMIC_SECTION(of.what << ", threads " << threads) {
      for (const Arithmetic& in : arithmetics(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, in.dtype);
        run.replayed = true;
        const Values bias = of.bias ? run.parameters[1] : Values{};
        check(run_operator(*device, run, {.threads = threads, .precision = in.precision}),
              dense(of.input[0], run.input_values, run.parameters[0], bias, of.units),
              dense_gradients(of.input[0], run.input_values, run.parameters[0], of.units, run.output_gradient), of.bias,
              in.tolerance);
      }
    }
  }
}

// Each activation is a separate ctest case, because the cases take long.
TEMPLATE_TEST_CASE_SIG("a fused activation equals the activation of the output", "",
                       ((engine::ActivationKind kind), kind), engine::ActivationKind::kRelu,
                       engine::ActivationKind::kTanh, engine::ActivationKind::kSigmoid,
                       engine::ActivationKind::kLeakyRelu, engine::ActivationKind::kRelu6) {
  const auto device = open_test_device();
  const engine::ActivationFunction f(kind, kind == engine::ActivationKind::kLeakyRelu ? 0.25F : 0.0F);
  // The backward pass reads the stored output. In lower precisions than FP32 it may be on the other side of a kink than
  // the reference.
  const auto gradient_of = [&](const Values& output, const OperatorRun& trained, const OperatorCase& run,
                               const Arithmetic& in) {
    const bool is_exact = in.precision == engine::Precision::kFloat32;
    const Values stored(trained.output.begin(), trained.output.end());
    return activation_gradient(is_exact ? output : stored, f, run.output_gradient);
  };
  // Allows one more rounding, of the gradient before the activation.
  const auto tolerance_in = [](const Arithmetic& in) {
    return in.precision == engine::Precision::kFloat32 ? in.tolerance : 2.0 * in.tolerance;
  };
  for (const ConvCase& of : kConvolutions) {
    if (is_too_long(operations_of(of))) continue;
    if (of.input[0] == 32) continue;  // takes long; tests of training include one
    // On a GPU an activation is a pass over the output of any convolution, so one activation takes the long ones.
    if (device->is_cuda() && kind != engine::ActivationKind::kRelu && operations_of(of) > 100'000) continue;
    DYNAMIC_SECTION(of.what << ", " << static_cast<int>(f.kind)) {
      for (const Arithmetic& in : arithmetics(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, in.dtype);
        run.replayed = true;
        std::get<Conv2dSpec>(run.spec).activation = f;
        const Values bias = of.bias ? run.parameters[1] : Values{};
        const Values output = activation(
            conv2d(of.input, run.input_values, run.parameters[0], bias, of.filters, of.window, of.groups), f);
        const PrepareOptions training{.precision = in.precision};
        const OperatorRun trained = run_operator(*device, run, training);
        check(trained, output,
              conv2d_gradients(of.input, run.input_values, run.parameters[0], of.filters, of.window,
                               gradient_of(output, trained, run, in), of.groups),
              of.bias, tolerance_in(in), tolerance_in(in));
        const auto parameters = device->prepare(run.spec, training)->traits().parameters;
        const PrepareOptions inference{
            .mode = OperatorMode::kInference, .parameters = parameters, .precision = in.precision};
        CHECK(run_operator(*device, run, inference).output == trained.output);
      }
    }
  }
  for (const DenseCase& of : kDenseLayers) {
    if (of.input[0] == 32) continue;  // takes long; tests of training include one
    DYNAMIC_SECTION(of.what << ", " << static_cast<int>(f.kind)) {
      for (const Arithmetic& in : arithmetics(*device)) {
        CAPTURE(in.name);
        OperatorCase run = make_case(*device, of, in.dtype);
        run.replayed = true;
        std::get<DenseSpec>(run.spec).activation = f;
        const Values bias = of.bias ? run.parameters[1] : Values{};
        const Values output = activation(dense(of.input[0], run.input_values, run.parameters[0], bias, of.units), f);
        const OperatorRun trained = run_operator(*device, run, {.precision = in.precision});
        check(trained, output,
              dense_gradients(of.input[0], run.input_values, run.parameters[0], of.units,
                              gradient_of(output, trained, run, in)),
              of.bias, tolerance_in(in), tolerance_in(in));
      }
    }
  }
}

TEST_CASE("dense at inference reads the training plan's parameters and gives its output") {
  const auto device = open_test_device();
  for (const DenseCase& of : kDenseLayers) {
    DYNAMIC_SECTION(of.what) {
      for (const Arithmetic& in : arithmetics(*device)) {
        CAPTURE(in.name);
        const OperatorCase run = make_case(*device, of, in.dtype);
        const PrepareOptions training{.precision = in.precision};
        const auto parameters = device->prepare(run.spec, training)->traits().parameters;
        const PrepareOptions inference{
            .mode = OperatorMode::kInference, .parameters = parameters, .precision = in.precision};
        CHECK(device->prepare(run.spec, inference)->traits().saved_bytes == 0);
        CHECK(run_operator(*device, run, inference).output == run_operator(*device, run, training).output);
      }
    }
  }
}

TEST_CASE("dense at inference reads the parameters of a plan with another batch size") {
  const auto device = open_test_device();
  const OperatorCase small = make_case(*device, kDenseLayers[2]);
  const auto parameters = device->prepare(small.spec, {})->traits().parameters;
  const DenseCase large{"large batch", {256, 500}, 10, false};
  const OperatorCase run = make_case(*device, large);
  const OperatorRun result =
      run_operator(*device, run, {.mode = OperatorMode::kInference, .threads = 2, .parameters = parameters});
  CHECK(relative_error(result.output, dense(256, run.input_values, run.parameters[0], run.parameters[1], 10)) < 1e-5);
}

}  // namespace
}  // namespace arbalest::tests
