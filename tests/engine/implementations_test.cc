// Tests that operators get oneDNN's fast kernels, never its reference loops.
#include "engine/base/error.h"
#include "engine/cpu/lanes/kernels.h"
#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/primitives.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

using engine::Device;
using engine::DType;
using engine::Layout;
using engine::OperatorSpec;
using engine::PoolKind;

TEST_CASE("layers of LeNet, a perceptron and a residual net get fast kernels, not reference loops") {
  const auto device = open_test_device();
  const int threads = GENERATE(1, 2, 4);
  const std::int64_t batch = GENERATE(1, 5, 32, 256);
  const auto mode = GENERATE(engine::OperatorMode::kTraining, engine::OperatorMode::kInference);
  const std::vector<Arithmetic> types = tensor_types(*device);
  const Arithmetic in = types.at(GENERATE(0U, 1U) % types.size());
  // Throws if oneDNN has only its reference implementation.
  const auto prepare = [&](const OperatorSpec& spec) {
    return device->prepare(spec, {.mode = mode, .threads = threads, .precision = in.precision})->traits().output;
  };

  const Layout digits = device->plain_layout({batch, 1, 28, 28}, DType::kFloat32);
  const Layout conv1 = prepare(engine::Conv2dSpec{digits, 20, {{5, 5}, {1, 1}}});
  CHECK(conv1.dtype() == in.dtype);
  if (in.dtype == DType::kBFloat16) {
    const bool has_kernels = engine::cpu::bfloat16_lane_kernels() != nullptr;
    CHECK(engine::cpu::lies_in_lanes(conv1) == (has_kernels && batch % engine::cpu::kLanes == 0));
  }
  const Layout pool1 = prepare(engine::Pool2dSpec{conv1, PoolKind::kMax, {{2, 2}, {2, 2}}});
  const Layout conv2 = prepare(engine::Conv2dSpec{pool1, 50, {{5, 5}, {1, 1}}});
  const Layout pool2 = prepare(engine::Pool2dSpec{conv2, PoolKind::kMax, {{2, 2}, {2, 2}}});
  const Layout dense1 = prepare(engine::DenseSpec{pool2, 500});
  const Layout relu = prepare(engine::ActivationSpec{dense1, engine::ActivationKind::kRelu});
  CHECK(prepare(engine::DenseSpec{relu, 10}) == device->plain_layout({batch, 10}, in.dtype));

  const Layout flat = prepare(engine::FlattenSpec{digits});
  const Layout hidden = prepare(engine::DenseSpec{flat, 128});
  CHECK(prepare(engine::DenseSpec{hidden, 10}).shape() == engine::Shape{batch, 10});

  for (const bool has_relu : {false, true}) {
    const Layout normalized = prepare(engine::BatchNormSpec{conv1, 1e-5F, has_relu});  // 20 channels fill no vector
    if (!engine::cpu::lies_in_lanes(conv1)) CHECK(normalized == conv1);
    if (batch > 1 || mode == engine::OperatorMode::kInference) CHECK(prepare(engine::BatchNormSpec{dense1}) == dense1);
  }

  const Layout colors = device->plain_layout({batch, 3, 32, 32}, DType::kFloat32);
  const Layout stem = prepare(engine::Conv2dSpec{colors, 16, {{3, 3}, {1, 1}, {1, 1}}, false});
  const Layout down = prepare(engine::Conv2dSpec{stem, 32, {{3, 3}, {2, 2}, {1, 1}}, false});
  const Layout mean = prepare(engine::Pool2dSpec{down, PoolKind::kAverage, {{16, 16}, {1, 1}}});
  CHECK(prepare(engine::DenseSpec{mean, 10}).shape() == engine::Shape{batch, 10});
}

TEST_CASE("a reference implementation is recognized and refused") {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  // oneDNN has no fast kernel for weights with innermost filters and an input with the width before the height.
  using Tag = dnnl::memory::format_tag;
  const auto f32 = dnnl::memory::data_type::f32;
  const engine::cpu::LinearTensors odd{
      {{2, 8, 6, 6}, f32, Tag::abdc}, {{8, 8, 3, 3}, f32, Tag::dcab}, {}, {{2, 8, 4, 4}, f32, Tag::abdc}};
  const engine::Window window{{3, 3}, {1, 1}};
  CHECK_THROWS_WITH(convolution(engine, {}, odd, window, {}), ContainsSubstring("no fast kernel"));
  const dnnl::memory::desc examples_last({8, 20, 6, 6}, f32, Tag::chwn);
  CHECK_FALSE(engine::cpu::find_batch_normalization(engine, engine::OperatorMode::kTraining, examples_last, 1e-5F, true,
                                                    false));
}

TEST_CASE("convolutions and dense layers apply an activation inside their kernel") {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto kind =
      GENERATE(engine::ActivationKind::kRelu, engine::ActivationKind::kTanh, engine::ActivationKind::kSigmoid,
               engine::ActivationKind::kLeakyRelu, engine::ActivationKind::kRelu6);
  const std::vector<Arithmetic> types = tensor_types(*open_test_device());
  const DType dtype = types.at(GENERATE(0U, 1U) % types.size()).dtype;
  const auto any = [dtype](const dnnl::memory::dims& extents) { return engine::cpu::any_layout(extents, dtype); };
  const engine::cpu::LinearTensors images{any({8, 16, 12, 12}), any({32, 16, 3, 3}), {}, any({8, 32, 10, 10})};
  CHECK(convolution(engine, {}, images, {{3, 3}, {1, 1}}, kind).applies_activation);
  CHECK_FALSE(convolution(engine, {}, images, {{3, 3}, {1, 1}}, {}).applies_activation);
  const engine::cpu::LinearTensors features{any({8, 800}), any({500, 800}), {}, any({8, 500})};
  CHECK(inner_product(engine, {}, features, kind).applies_activation);
}

}  // namespace
}  // namespace arbalest::tests
