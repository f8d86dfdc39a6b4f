// The loops of batch norm on blocked channels. AVX-512 loops give the same results as the portable loops.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "engine/base/alignment.h"
#include "engine/cpu/normalization/runs.h"
#include "engine/elementwise/bfloat16.h"
#include "tests/engine/emulated_kernels.h"
#include "tests/support/catch.h"
#include "tests/support/numbers.h"
#include "tests/support/skip.h"

namespace arbalest::tests {

namespace {

using engine::BFloat16;
using engine::cpu::BlockedGradients;
using engine::cpu::NormRuns;
using engine::cpu::NormTerms;

constexpr std::int64_t kPixels = 37;
constexpr std::int64_t kBlock = 16;

// A run of pixels, or a vector with one number per channel, aligned to cache lines like tensors.
template <typename T>
struct alignas(engine::kAlignment) Numbers {
  T of[kPixels * kBlock] = {};
};

Numbers<float> floats(unsigned seed) {
  Numbers<float> numbers;
  const std::vector<double> values = random_values(std::size(numbers.of), seed);
  std::ranges::transform(values, numbers.of, [](double value) { return static_cast<float>(value); });
  return numbers;
}

template <typename T>
Numbers<T> rounded(const Numbers<float>& numbers) {
  Numbers<T> result;
  for (std::size_t i = 0; i < std::size(numbers.of); ++i) engine::elementwise::store(numbers.of[i], result.of[i]);
  return result;
}

// All outputs of the loops.
template <typename T>
class Written {
 public:
  explicit Written(const NormRuns<T>& loops) {
    Numbers<float> numbers = floats(1);
    numbers.of[0] = std::numeric_limits<float>::infinity();
    numbers.of[1] = std::nanf("");
    const Numbers<T> x = rounded<T>(numbers), addend = rounded<T>(floats(2)), dy = rounded<T>(floats(3));
    Numbers<float> memory = floats(4);  // mean, inverse, factor and shift of each channel
    const NormTerms terms = NormTerms::in(memory.of, kBlock);
    const Numbers<float> means = floats(5), slopes = floats(6);
    Numbers<float> partials;
    // For some channels, sets parameters that test rounding of (x - mean) * factor + shift.
    const auto set = [&](std::int64_t channel, float factor, float shift) {
      terms.mean[channel] = 0.0F;
      terms.factor[channel] = factor;
      terms.shift[channel] = shift;
    };
    set(2, 1.0F, 3.4e38F);         // rounds to infinity if x is positive or near zero
    set(3, 0.0F, 1.0F + 0x1p-8F);  // a tie, which rounds to even
    set(4, 0.0F, 1.0F + 0x3p-8F);
    Numbers<T> y, addend_gradient, input_gradient;

    loops.measure(rounded<T>(floats(7)).of, kPixels, partials.of);
    keep(partials);
    for (int relu = 0; relu < 2; ++relu) {
      for (int adds = 0; adds < 2; ++adds) {
        loops.normalize[relu][adds](x.of, addend.of, terms, 0, kPixels, y.of);
        keep(y);
        if (adds != 0 || !std::is_same_v<T, BFloat16>) continue;
        for (std::int64_t p = 0; p < kPixels; ++p) {
          const auto value = [&](std::int64_t place) { return engine::elementwise::load(y.of[p * kBlock + place]); };
          infinities_ += std::isinf(value(2));
          ties_are_even_ &= value(3) == 1.0F && value(4) == 1.0F + 0x4p-8F;
        }
      }
    }
    const BlockedGradients<T> task{.input = x.of,
                                   .output_gradient = dy.of,
                                   .output = y.of,
                                   .addend_gradient = addend_gradient.of,
                                   .input_gradient = input_gradient.of,
                                   .scale_gradient = nullptr,
                                   .shift_gradient = nullptr};
    for (int behind = 0; behind < 3; ++behind) {
      loops.sum[behind](task, terms, 0, 0, kPixels, partials.of);
      loops.differentiate[behind](task, terms, means.of, slopes.of, 0, 0, kPixels);
      keep(partials);
      keep(addend_gradient);
      keep(input_gradient);
    }
  }

  bool operator==(const Written&) const = default;
  int infinities() const { return infinities_; }
  bool ties_are_even() const { return ties_are_even_; }

 private:
  template <typename Number>
  void keep(const Numbers<Number>& numbers) {
    const auto bytes = std::as_bytes(std::span(numbers.of));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  std::vector<std::byte> bytes_;
  int infinities_ = 0;
  bool ties_are_even_ = true;
};

}  // namespace

TEST_CASE("batch norm on blocks: AVX-512 loops write the same bytes as the portable loops") {
  if (!__builtin_cpu_supports("avx512f")) skip_test("it takes a processor with AVX-512");
  CHECK((Written(engine::cpu::kAvx512NormRuns) == Written(engine::cpu::kFloatNormRuns.of[1])));
  CHECK(&engine::cpu::norm_runs<float>(kBlock) == &engine::cpu::kAvx512NormRuns);
  CHECK(&engine::cpu::norm_runs<float>(kBlock / 2) == &engine::cpu::kFloatNormRuns.of[0]);
}

TEST_CASE(
    "batch norm on blocks: avx512_bf16 loops write the same bytes as the portable loops, except for numbers below "
    "2^-126") {
  if (!__builtin_cpu_supports("avx512bf16")) skip_test("it takes a processor with avx512_bf16");
  const Written native(engine::cpu::kAvx512Bf16NormRuns);
  CHECK((native == Written(engine::cpu::kBFloat16NormRuns.of[1])));
  CHECK((native.infinities() > 0 && native.ties_are_even()));
  CHECK(&engine::cpu::norm_runs<BFloat16>(kBlock) == &engine::cpu::kAvx512Bf16NormRuns);
  CHECK(&engine::cpu::norm_runs<BFloat16>(kBlock / 2) == &engine::cpu::kBFloat16NormRuns.of[0]);
}

TEST_CASE("batch norm on blocks: the avx512_bf16 loops, emulated, write the same bytes as the portable loops") {
  const Written emulated(engine::cpu::kEmulatedNormRuns);
  CHECK((emulated == Written(engine::cpu::kBFloat16NormRuns.of[1])));
  CHECK((emulated.infinities() > 0 && emulated.ties_are_even()));
}

}  // namespace arbalest::tests
