// Tests for which weight layouts our own kernel writes the gradient, and its inner loop. linear_ops_test.cc checks the
// results of whole layers.
#include "engine/cpu/dense_gradient/dense_gradient.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
#include "tests/engine/emulated_kernels.h"
#include "tests/engine/lane_tensors.h"
#include "tests/engine/operator_run.h"
#include "tests/support/amx.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace arbalest::tests {
namespace {

using dnnl::memory;
using engine::cpu::paired_weights;

TEST_CASE("our kernel writes the gradient of bfloat16 weights in oneDNN's paired order") {
  if (engine::cpu::bfloat16_lane_kernels() == nullptr) skip_test("it takes a processor with avx512_bf16");
  skip_with_amx();
  const auto device = open_test_device();
  const engine::DenseSpec spec{device->plain_layout({32, 800}, engine::DType::kBFloat16), 500};
  const auto layer = device->prepare(spec, {.precision = engine::Precision::kBFloat16});
  const memory::desc weights = engine::cpu::descriptor(layer->traits().parameters.at(0));
  const auto paired = paired_weights(engine::cpu::with_type(weights, engine::DType::kBFloat16));
  REQUIRE(paired.has_value());
  CHECK(paired->units == 500);
  CHECK(paired->features == 800);
  CHECK(paired->padded_units() * paired->padded_features() == engine::cpu::elements_of(weights));
  CHECK_FALSE(paired_weights(weights).has_value());  // float32
}

TEST_CASE("the kernel of a dense gradient sums the products of all pairs of examples") {
  using engine::cpu::kBlockFeatures;
  using engine::cpu::kBlockUnits;
  constexpr std::int64_t kPairs = 3;
  constexpr std::int64_t kBlock = 2 * kBlockUnits;  // units of the layout's block, so that rows are apart
  const auto count = [](std::int64_t columns) { return 2 * kPairs * columns; };
  // [pairs, columns, 2 examples]
  const Values input = random_values(count(kBlockFeatures), 1, engine::DType::kBFloat16);
  const Values arriving = random_values(count(kBlockUnits), 2, engine::DType::kBFloat16);
  Tensor<engine::BFloat16> input_units = tensor_of<engine::BFloat16>(Floats(input.begin(), input.end()));
  Tensor<engine::BFloat16> arriving_units = tensor_of<engine::BFloat16>(Floats(arriving.begin(), arriving.end()));
  Values expected;  // [pairs of features, units, 2 features]
  for (std::int64_t pair = 0; pair < kBlockFeatures / 2; ++pair) {
    for (std::int64_t unit = 0; unit < kBlockUnits; ++unit) {
      for (const std::int64_t feature : {2 * pair, 2 * pair + 1}) {
        double sum = 0.0;
        for (std::int64_t example = 0; example < 2 * kPairs; ++example) {
          const auto at = [&](std::int64_t columns, std::int64_t column) {
            return static_cast<std::size_t>((example / 2 * columns + column) * 2 + example % 2);
          };
          sum += input[at(kBlockFeatures, feature)] * arriving[at(kBlockUnits, unit)];
        }
        expected.push_back(sum);
      }
    }
  }
  std::vector kernels{engine::cpu::emulated_dense_gradient_of_block};
  if (engine::cpu::bfloat16_lane_kernels() != nullptr) kernels.push_back(engine::cpu::dense_gradient_of_block);
  for (const auto& kernel : kernels) {
    CAPTURE(kernel == engine::cpu::emulated_dense_gradient_of_block);
    Floats written(static_cast<std::size_t>(kBlockFeatures / 2 * kBlock * 2), NAN);
    kernel({.pairs = kPairs,
            .input = input_units.units(),
            .input_row = kBlockFeatures,
            .output_gradient = arriving_units.units(),
            .output_gradient_row = kBlockUnits,
            .target = written.data(),
            .target_row = kBlock * 2});
    Floats found;
    for (std::size_t row = 0; row < kBlockFeatures / 2; ++row) {
      const auto first = written.begin() + static_cast<std::ptrdiff_t>(row * kBlock * 2);
      found.insert(found.end(), first, first + kBlockUnits * 2);
      CHECK(std::all_of(first + kBlockUnits * 2, first + kBlock * 2, [](float value) { return std::isnan(value); }));
    }
    CHECK(relative_error(found, expected) < 1e-6);
  }
}

TEST_CASE("oneDNN writes the gradient of weights in other orders") {
  const auto is_paired = [](memory::format_tag tag) {
    return paired_weights({{500, 800}, memory::data_type::bf16, tag}).has_value();
  };
  CHECK_FALSE(is_paired(memory::format_tag::ab));
  CHECK_FALSE(is_paired(memory::format_tag::ba));
  CHECK_FALSE(is_paired(memory::format_tag::AB16b64a));
}

}  // namespace
}  // namespace arbalest::tests
