// oneDNN's default arithmetic of float32, which an environment variable sets, does not reach our kernels.
#include <dnnl.hpp>

#include "engine/cpu/onednn/kernel_choice.h"
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {
namespace {

// Sets what ONEDNN_DEFAULT_FPMATH_MODE sets, until the end of the scope.
class DefaultMathMode {
 public:
  explicit DefaultMathMode(dnnl_fpmath_mode_t mode) {
    REQUIRE(dnnl_get_default_fpmath_mode(&before_) == dnnl_success);
    REQUIRE(dnnl_set_default_fpmath_mode(mode) == dnnl_success);
  }
  DefaultMathMode(const DefaultMathMode&) = delete;
  DefaultMathMode& operator=(const DefaultMathMode&) = delete;
  ~DefaultMathMode() { dnnl_set_default_fpmath_mode(before_); }

 private:
  dnnl_fpmath_mode_t before_ = dnnl_fpmath_mode_strict;
};

void require_equal(const OperatorRun& one, const OperatorRun& other) {
  CHECK(one.output == other.output);
  CHECK(one.input_gradient == other.input_gradient);
  CHECK(one.parameter_gradients == other.parameter_gradients);
}

}  // namespace

TEST_CASE("attributes of primitives ask for float32, whatever the default is") {
  const DefaultMathMode rounded(dnnl_fpmath_mode_bf16);
  CHECK(dnnl::primitive_attr().get_fpmath_mode() == dnnl::fpmath_mode::bf16);
  CHECK(engine::cpu::primitive_attributes().get_fpmath_mode() == dnnl::fpmath_mode::strict);
  CHECK(engine::cpu::followed_by({engine::ActivationKind::kTanh}).get_fpmath_mode() == dnnl::fpmath_mode::strict);
}

TEST_CASE("convolutions and dense layers in float32 keep their bytes if the default allows bfloat16") {
  const auto device = open_test_device();
  const engine::Layout images = device->plain_layout({2, 32, 6, 6}, engine::DType::kFloat32);
  const engine::Layout vectors = device->plain_layout({4, 64}, engine::DType::kFloat32);
  const auto run = [&](const engine::OperatorSpec& spec, const engine::Layout& input, std::int64_t weights,
                       std::int64_t outputs) {
    OperatorCase of{.spec = spec, .input = input, .input_values = random_values(input.shape().elements(), 1)};
    of.parameters = {random_values(weights, 2), random_values(outputs, 3)};
    of.output_gradient = random_values(
        device->prepare(spec, {.mode = engine::OperatorMode::kTraining})->traits().output.shape().elements(), 4);
    return run_operator(*device, of, {.mode = engine::OperatorMode::kTraining});
  };
  const engine::Conv2dSpec convolution{images, 32, {{3, 3}, {1, 1}, {1, 1}}};
  const engine::DenseSpec dense{vectors, 48};
  const OperatorRun strict_images = run(convolution, images, 32 * 32 * 9, 32);
  const OperatorRun strict_vectors = run(dense, vectors, 64 * 48, 48);
  const DefaultMathMode rounded(dnnl_fpmath_mode_bf16);
  require_equal(run(convolution, images, 32 * 32 * 9, 32), strict_images);
  require_equal(run(dense, vectors, 64 * 48, 48), strict_vectors);
}

}  // namespace arbalest::tests
