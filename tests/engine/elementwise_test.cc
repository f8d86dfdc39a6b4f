// The bodies that host and device share.
#include <cmath>
#include <limits>

#include "engine/elementwise/exponential.h"
#include "engine/elementwise/finite.h"
#include "engine/elementwise/philox.h"
#include "engine/elementwise/sgd_step.h"
#include "tests/support/catch.h"

namespace arbalest::engine::elementwise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("philox gives the known answers of its authors' library") {
  // Random123, tests/kat_vectors, philox4x32 with 10 rounds.
  const auto words = [](PhiloxCounter counter, PhiloxKey key) {
    const PhiloxCounter random = philox(counter, key);
    return std::vector<std::uint32_t>(random.words, random.words + 4);
  };
  CHECK(words({{0, 0, 0, 0}}, {{0, 0}}) == std::vector<std::uint32_t>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(words({{~0U, ~0U, ~0U, ~0U}}, {{~0U, ~0U}}) ==
        std::vector<std::uint32_t>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(words({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}}) ==
        std::vector<std::uint32_t>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("exponential is exp to float32's precision") {
  double worst = 0.0;
  for (int i = -87 * 64; i <= 88 * 64; ++i) {
    const float x = static_cast<float>(i) / 64.0F;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exponential(x)) - exact) / exact);
  }
  CHECK(worst < 2e-7);
  CHECK(exponential(0.0F) == 1.0F);
  CHECK(exponential(-100.0F) == 0.0F);
  CHECK(exponential(-kInfinity) == 0.0F);
  CHECK(exponential(89.0F) == kInfinity);
  CHECK(exponential(kInfinity) == kInfinity);
  CHECK(std::isnan(exponential(kNaN)));
}

TEST_CASE("numbers that are not finite are counted by their bits") {
  CHECK(count_non_finite(kNaN) == 1);
  CHECK(count_non_finite(-kInfinity) == 1);
  CHECK(count_non_finite(kInfinity) == 1);
  CHECK(count_non_finite(std::numeric_limits<float>::max()) == 0);
  CHECK(count_non_finite(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(count_non_finite(-0.0F) == 0);
}

TEST_CASE("a step is refused at 1e18, and where it is not a number") {
  CHECK_FALSE(is_refused(0.0F, 0.99e18F, {1.0F, 0.0F, 0.0F, 0.0F}));
  CHECK(is_refused(0.0F, 1e18F, {1.0F, 0.0F, 0.0F, 0.0F}));
  CHECK(is_refused(0.0F, -1e18F, {1.0F, 0.0F, 0.0F, 0.0F}));
  CHECK(is_refused(0.0F, 1e38F, {1e38F, 0.0F, 0.0F, 0.0F}));
  CHECK(is_refused(0.0F, kNaN, {0.0F, 0.0F, 0.0F, 0.0F}));
  CHECK(is_refused(0.0F, kInfinity, {0.0F, 0.0F, 0.0F, 0.0F}));
  CHECK_FALSE(is_refused(0.0F, 1e30F, {1e-20F, 0.0F, 0.0F, 0.0F}));
}

}  // namespace
}  // namespace arbalest::engine::elementwise
