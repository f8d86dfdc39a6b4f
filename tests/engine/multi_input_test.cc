// Sums, concatenations and padded shortcuts, compared with the references, and sums of gradients.
#include "engine/elementwise/bfloat16.h"
#include "engine/passes/tensor_sum.h"
#include "tests/engine/operator_run.h"
#include "tests/support/bfloat16.h"
#include "tests/support/catch.h"
#include "tests/support/device_memory.h"
#include "tests/support/numbers.h"
#include "tests/support/thread_counts.h"

namespace arbalest::tests {
namespace {

using engine::ActivationKind;
using engine::AddSpec;
using engine::ConcatSpec;
using engine::Device;
using engine::DType;
using engine::Layout;
using engine::OperatorMode;
using engine::PaddedShortcutSpec;
using engine::Shape;

Layout layout_of(Device& device, const Shape& shape, bool native, DType dtype) {
  return native && shape.rank() == 4 ? native_image_layout(device, shape, dtype) : device.plain_layout(shape, dtype);
}

Floats to_floats(const Values& values) { return {values.begin(), values.end()}; }

Values sum_of(const Values& a, const Values& b) {
  Values sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

const Shape kShapes[] = {{5, 20, 7, 3}, {32, 5, 3, 4}, {2, 64, 8, 8}, {3, 17, 1, 1},
                         {4, 1, 5, 5},  {1, 1, 1, 1},  {7, 33}};

TEST_CASE("add agrees with the reference, with and without ReLU, also in place") {
  const auto device = open_test_device();
  const bool relu = GENERATE(false, true);
  const bool in_place = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  const auto [a_native, b_native] = GENERATE(table<bool, bool>({{true, true}, {true, false}, {false, true}}));
  for (const Shape& shape : kShapes) {
    for (const Arithmetic& in : tensor_types(*device)) {
      CAPTURE(to_string(shape), in.name, relu, in_place, a_native, b_native);
      OperatorCase of;
      of.input = layout_of(*device, shape, a_native, in.dtype);
      of.others = {{layout_of(*device, shape, b_native, in.dtype), random_values(shape.elements(), 2, in.dtype)}};
      of.spec = AddSpec{of.input, of.others[0].layout, relu ? std::optional(ActivationKind::kRelu) : std::nullopt};
      of.input_values = random_values(shape.elements(), 1, in.dtype);
      of.output_gradient = random_values(shape.elements(), 3, in.dtype);
      of.in_place = in_place;
      const OperatorRun run = run_operator(*device, of, {.threads = threads});

      const Values sum = sum_of(of.input_values, of.others[0].values);
      const Values expected = relu ? activation(sum, ActivationKind::kRelu) : sum;
      CHECK(relative_error(run.output, expected) < in.tolerance);
      const Values stored(run.output.begin(), run.output.end());
      const Values gradient =
          relu ? activation_gradient(stored, ActivationKind::kRelu, of.output_gradient) : of.output_gradient;
      CHECK(run.input_gradient == to_floats(gradient));
      CHECK(run.other_gradients.at(0) == to_floats(gradient));
      CHECK(run.padding_is_zero);
      CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference, .threads = threads}).output == run.output);
      // Only one of the gradients is wanted.
      const OperatorRun second = run_operator(*device, of, {.threads = threads, .no_gradient = {true, false}});
      CHECK(second.other_gradients.at(0) == to_floats(gradient));
    }
  }
}

TEST_CASE("operators with several inputs keep the convolutions' layout, and copy inputs only from other layouts") {
  const auto device = open_test_device();
  const Shape shape{2, 32, 8, 8};
  // Uses the narrowest type, because convolutions on a GPU read float32 in canonical order.
  const DType dtype = tensor_types(*device).back().dtype;
  const Layout native = native_image_layout(*device, shape, dtype);
  const Layout plain = device->plain_layout(shape, dtype);
  REQUIRE(native != plain);
  const auto traits = [&](const Layout& a, const Layout& b) { return device->prepare(AddSpec{a, b}, {})->traits(); };
  CHECK(traits(native, native).output == native);
  CHECK(traits(native, native).scratch_bytes == 0);
  CHECK(traits(plain, native).output == native);
  CHECK(traits(plain, native).scratch_bytes > 0);
  CHECK(traits(plain, plain).output == plain);
  CHECK(device->prepare(ConcatSpec{{native, native}}, {})->traits().output ==
        native_image_layout(*device, {2, 64, 8, 8}, dtype));
  CHECK(device->prepare(PaddedShortcutSpec{native, 64, 2}, {})->traits().output ==
        native_image_layout(*device, {2, 64, 4, 4}, dtype));
}

TEST_CASE("a sum's ReLU keeps NaN") {
  const auto device = open_test_device();
  OperatorCase of;
  of.input = device->plain_layout({1, 2}, DType::kFloat32);
  of.others = {{of.input, {1, 1}}};
  of.spec = AddSpec{of.input, of.input, ActivationKind::kRelu};
  of.input_values = {std::nan(""), -2};
  const OperatorRun run = run_operator(*device, of, {.mode = OperatorMode::kInference});
  CHECK(std::isnan(run.output.at(0)));
  CHECK(run.output.at(1) == 0.0F);
}

TEST_CASE("concat agrees with the reference, and its gradients are parts of the output's gradient") {
  const auto device = open_test_device();
  const bool first_native = GENERATE(false, true);
  const bool others_native = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  const std::vector<Shape> shapes = GENERATE(
      std::vector<Shape>{{3, 16, 5, 4}, {3, 32, 5, 4}, {3, 16, 5, 4}}, std::vector<Shape>{{2, 16, 4, 4}, {2, 5, 4, 4}},
      std::vector<Shape>{{2, 5, 4, 4}, {2, 3, 4, 4}, {2, 1, 4, 4}, {2, 7, 4, 4}},
      std::vector<Shape>{{4, 3, 1, 1}, {4, 20, 1, 1}}, std::vector<Shape>{{1, 1, 1, 1}, {1, 1, 1, 1}},
      std::vector<Shape>{{5, 7}, {5, 1}, {5, 33}});
  for (const Arithmetic& in : tensor_types(*device)) {
    OperatorCase of;
    of.input = layout_of(*device, shapes[0], first_native, in.dtype);
    of.input_values = random_values(shapes[0].elements(), 1, in.dtype);
    std::vector<Layout> layouts{of.input};
    std::vector<Values> values{of.input_values};
    for (std::size_t k = 1; k < shapes.size(); ++k) {
      const auto seed = static_cast<unsigned>(k + 1);
      of.others.push_back({layout_of(*device, shapes[k], others_native, in.dtype),
                           random_values(shapes[k].elements(), seed, in.dtype)});
      layouts.push_back(of.others.back().layout);
      values.push_back(of.others.back().values);
    }
    of.spec = ConcatSpec{layouts};
    const Values expected = concat(shapes, values);
    of.output_gradient = random_values(static_cast<std::int64_t>(expected.size()), 9, in.dtype);
    of.replayed = true;
    CAPTURE(in.name, to_string(shapes[0]), first_native, others_native);
    const OperatorRun run = run_operator(*device, of, {.threads = threads});
    CHECK(run.output == to_floats(expected));
    const std::vector<Values> parts = split(shapes, of.output_gradient);
    CHECK(run.input_gradient == to_floats(parts[0]));
    for (std::size_t k = 1; k < parts.size(); ++k) CHECK(run.other_gradients[k - 1] == to_floats(parts[k]));
    CHECK(run.padding_is_zero);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference, .threads = threads}).output == run.output);
    CHECK(run_operator(*device, of, {.threads = threads, .no_gradient = {true, false}}).other_gradients ==
          run.other_gradients);
  }
}

TEST_CASE("float32 images can be concatenated with and added to bfloat16 features") {
  const auto device = open_test_device();
  if (!computes_bfloat16(*device)) return;
  const Shape shape{2, 3, 4, 5};
  OperatorCase of;
  of.input = device->plain_layout(shape, DType::kFloat32);
  of.input_values = random_values(shape.elements(), 1, DType::kBFloat16);
  of.others = {
      {native_image_layout(*device, shape, DType::kBFloat16), random_values(shape.elements(), 2, DType::kBFloat16)}};
  of.output_gradient = random_values(shape.elements(), 3, DType::kBFloat16);
  of.spec = AddSpec{of.input, of.others[0].layout};
  const OperatorRun sum = run_operator(*device, of, {});
  CHECK(relative_error(sum.output, sum_of(of.input_values, of.others[0].values)) < 0x1p-8);
  CHECK(sum.input_gradient == to_floats(of.output_gradient));
  CHECK(sum.other_gradients.at(0) == to_floats(of.output_gradient));

  of.spec = ConcatSpec{{of.input, of.others[0].layout}};
  of.output_gradient = random_values(2 * shape.elements(), 4, DType::kBFloat16);
  const OperatorRun joined = run_operator(*device, of, {});
  CHECK(joined.output == to_floats(concat({shape, shape}, {of.input_values, of.others[0].values})));
  const std::vector<Values> parts = split({shape, shape}, of.output_gradient);
  CHECK(joined.input_gradient == to_floats(parts[0]));
  CHECK(joined.other_gradients.at(0) == to_floats(parts[1]));
}

TEST_CASE("padded shortcuts agree with the reference") {
  struct ShortcutCase {
    Shape input;
    std::int64_t channels;
    std::int64_t stride;
  };
  const auto device = open_test_device();
  const bool native = GENERATE(false, true);
  const int threads = GENERATE(from_range(thread_counts()));
  const ShortcutCase shortcut = GENERATE(ShortcutCase{{3, 16, 8, 8}, 32, 2}, ShortcutCase{{2, 5, 7, 6}, 12, 3},
                                         ShortcutCase{{2, 20, 4, 5}, 20, 1}, ShortcutCase{{4, 1, 3, 3}, 2, 2},
                                         ShortcutCase{{1, 3, 1, 1}, 40, 5}, ShortcutCase{{2, 17, 2, 2}, 18, 2},
                                         ShortcutCase{{32, 5, 7, 6}, 12, 3}, ShortcutCase{{16, 3, 4, 4}, 3, 2});
  for (const Arithmetic& in : tensor_types(*device)) {
    CAPTURE(to_string(shortcut.input), in.name, native);
    OperatorCase of;
    of.input = layout_of(*device, shortcut.input, native, in.dtype);
    of.spec = PaddedShortcutSpec{of.input, shortcut.channels, shortcut.stride};
    of.input_values = random_values(shortcut.input.elements(), 1, in.dtype);
    const Values expected = padded_shortcut(shortcut.input, of.input_values, shortcut.channels, shortcut.stride);
    of.output_gradient = random_values(static_cast<std::int64_t>(expected.size()), 2, in.dtype);
    const OperatorRun run = run_operator(*device, of, {.threads = threads});
    CHECK(run.output == to_floats(expected));
    CHECK(run.input_gradient ==
          to_floats(padded_shortcut_gradient(shortcut.input, shortcut.channels, shortcut.stride, of.output_gradient)));
    CHECK(run.padding_is_zero);
    CHECK(run_operator(*device, of, {.mode = OperatorMode::kInference, .threads = threads}).output == run.output);
  }
}

TEST_CASE("a sum of tensors covers exactly its elements, also in place of either input") {
  const auto device = open_test_device();
  const std::int64_t elements = GENERATE(1, 17, 70001);
  const int threads = GENERATE(from_range(thread_counts()));
  const int place = GENERATE(0, 1, 2);  // output buffer: its own, a's, b's
  const Values a = random_values(elements, 1);
  const Values b = random_values(elements, 2);
  std::vector<float> singles[2] = {to_floats(a), to_floats(b)};
  for (auto& values : singles) values.push_back(12.0F);
  std::vector<float> expected;
  for (std::size_t i = 0; i < a.size(); ++i) expected.push_back(singles[0][i] + singles[1][i]);
  expected.push_back(12.0F);
  const auto stream = device->create_stream({"test", threads});
  const auto run = [&](const auto& left, const auto& right, DType dtype) {
    const engine::Buffer buffers[] = {upload(*device, left), upload(*device, left), upload(*device, right)};
    void* sum = buffers[place].data();
    stream->enqueue(engine::TensorSum{buffers[1].data(), buffers[2].data(), sum, elements, dtype}, "sum");
    stream->record().synchronize();
    return download<std::decay_t<decltype(left[0])>>(*device, sum, left.size());
  };
  CHECK(run(singles[0], singles[1], DType::kFloat32) == expected);
  if (!computes_bfloat16(*device)) return;
  std::vector<std::uint16_t> halves[2];
  std::vector<std::uint16_t> rounded;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    float sum = 0.0F;
    for (int k = 0; k < 2; ++k) {
      const engine::BFloat16 half = engine::elementwise::to_bfloat16(singles[k][i]);
      halves[k].push_back(half.bits);
      sum += engine::elementwise::to_float(half);
    }
    rounded.push_back(engine::elementwise::to_bfloat16(i + 1 == expected.size() ? 12.0F : sum).bits);
  }
  CHECK(run(halves[0], halves[1], DType::kBFloat16) == rounded);
}

}  // namespace
}  // namespace arbalest::tests
