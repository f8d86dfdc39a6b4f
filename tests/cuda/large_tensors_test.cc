// What a GPU refuses because its kernels count in 32 bits.
#include "tests/engine/operator_run.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

TEST_CASE("pooling of 2^31 elements is refused on a GPU, and of fewer it is not") {
  const auto device = open_test_device();
  const auto prepare = [&](std::int64_t examples) {
    const engine::Shape shape{examples, 64, 128, 128};  // 2^20 elements an example
    return device->prepare(
        engine::Pool2dSpec{
            device->plain_layout(shape, engine::DType::kFloat32), engine::PoolKind::kMax, {{2, 2}, {2, 2}}},
        {.mode = engine::OperatorMode::kInference});
  };
  CHECK_THROWS_WITH(prepare(2048),
                    ContainsSubstring("a GPU pools fewer than 2^31 elements at once; use smaller batches"));
  CHECK_NOTHROW(prepare(2047));
}

}  // namespace arbalest::tests
