// Tests for which weight layouts our own kernel writes the gradient. linear_ops_test.cc checks the results.
#include "engine/cpu/dense_gradient/dense_gradient.h"

#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
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
