// Loops over bfloat16 with the processor's own rounding, and with emulated instructions.
#include "engine/cpu/passes/native_bfloat16.h"

#include <algorithm>
#include <vector>

#include "engine/elementwise/bfloat16.h"
#include "tests/engine/emulated_kernels.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"

namespace arbalest::tests {

TEST_CASE("loops with the processor's own rounding round and add like the portable functions") {
  const std::int64_t count = GENERATE(1, 15, 16, 37);
  constexpr std::size_t kBehind = 3;  // numbers behind the last, which stay
  std::vector<float> a;
  std::vector<engine::BFloat16> first, second, expected_rounded, expected_sum;
  for (const double value : random_values(count, 8)) {
    a.push_back(static_cast<float>(value));
    first.push_back(engine::elementwise::to_bfloat16(a.back()));
    second.push_back(engine::elementwise::to_bfloat16(2.5F - 3.0F * a.back()));
    expected_rounded.push_back(first.back());
    const float sum = engine::elementwise::load(first.back()) + engine::elementwise::load(second.back());
    expected_sum.push_back(engine::elementwise::to_bfloat16(sum));
  }
  for (auto* expected : {&expected_rounded, &expected_sum}) expected->resize(a.size() + kBehind, {0x4141});
  std::vector<engine::BFloat16> rounded(a.size() + kBehind, {0x4141});
  std::vector<engine::BFloat16> sum = rounded;
  const auto are_equal = [](const auto& found, const auto& expected) {
    return std::ranges::equal(found, expected, {}, &engine::BFloat16::bits, &engine::BFloat16::bits);
  };
  engine::cpu::emulated_round(a.data(), rounded.data(), count);
  CHECK(are_equal(rounded, expected_rounded));
  engine::cpu::emulated_add(first.data(), second.data(), sum.data(), count);
  CHECK(are_equal(sum, expected_sum));
  if (engine::cpu::bfloat16_lane_kernels() == nullptr) return;
  engine::cpu::round_natively(a.data(), rounded.data(), count);
  CHECK(are_equal(rounded, expected_rounded));
  engine::cpu::add_natively(first.data(), second.data(), sum.data(), count);
  CHECK(are_equal(sum, expected_sum));
}

}  // namespace arbalest::tests
