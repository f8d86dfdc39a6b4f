// Tests the elementwise functions that CPU and GPU code share.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "engine/elementwise/augmentation.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/exponential.h"
#include "engine/elementwise/finite.h"
#include "engine/elementwise/philox.h"
#include "engine/elementwise/random_crop.h"
#include "engine/elementwise/weight_update.h"
#include "tests/support/catch.h"

namespace arbalest::engine::elementwise {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("philox gives the known answers of the Random123 library") {
  // Values from Random123, tests/kat_vectors, philox4x32 with 10 rounds.
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

TEST_CASE("every bfloat16 converts to a float32 that rounds to the same bfloat16") {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const BFloat16 number{static_cast<std::uint16_t>(bits)};
    const float value = to_float(number);
    const bool is_nan = (bits & 0x7FFFU) > 0x7F80U;
    if (std::isnan(value) != is_nan) FAIL("to_float of " << bits);
    const std::uint16_t back = to_bfloat16(value).bits;
    // A signaling NaN may become a quiet one.
    if (is_nan ? !std::isnan(to_float({back})) : back != bits) FAIL("from " << bits << " to " << back);
  }
  CHECK(to_float({0x3F80}) == 1.0F);
  CHECK(to_float({0xC040}) == -3.0F);
  CHECK(to_float({0x7F80}) == kInfinity);
  CHECK(to_float({0x0001}) == std::ldexp(1.0F, -133));
}

TEST_CASE("float32 rounds to the nearest bfloat16, with ties to even") {
  const auto bits_of = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  const auto from_bits = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  // Tests values between each finite bfloat16 and its neighbor away from zero. The last neighbor is infinity.
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    if ((upper & 0x7FFFU) >= 0x7F80U) continue;
    const std::uint32_t lower = upper << 16U;
    const std::uint32_t even = upper + (upper & 1U);
    const std::uint32_t next = upper + 1U;
    for (const auto& [bits, expected] :
         {std::pair{lower + 1U, upper}, std::pair{lower + 0x7FFFU, upper}, std::pair{lower + 0x8000U, even},
          std::pair{lower + 0x8001U, next}, std::pair{lower + 0xFFFFU, next}}) {
      const std::uint16_t rounded = to_bfloat16(from_bits(bits)).bits;
      if (rounded != expected) FAIL(bits << " became " << rounded << ", not " << expected);
    }
  }
  // The upper half of the first NaN alone would be infinity. Rounding the second one by an addition would overflow.
  CHECK(to_bfloat16(std::numeric_limits<float>::max()).bits == 0x7F80);
  CHECK(std::isnan(to_float(to_bfloat16(from_bits(0x7F800001U)))));
  CHECK(std::isnan(to_float(to_bfloat16(from_bits(0xFFFFFFFFU)))));
  CHECK(bits_of(to_float(to_bfloat16(-0.0F))) == 0x80000000U);
  // Compares with rounding to 8 significant bits by arithmetic.
  for (int i = 0; i < 100000; ++i) {
    const float value = std::ldexp(static_cast<float>(i * 167 + 8388609), i % 200 - 110);
    int exponent = 0;
    const float mantissa = std::frexp(value, &exponent);
    const float expected = std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
    if (to_float(to_bfloat16(value)) != expected) FAIL(value);
  }
}

TEST_CASE("exponential() equals exp() to float32 precision") {
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

TEST_CASE("a step of 1e18 or more is refused, and so is a non-finite one") {
  const auto refuses = [](float gradient, float learning_rate) {
    return PlainSgdStep{{learning_rate, 0.0F, 1.0F}}.refuses(0.0F, gradient);
  };
  CHECK_FALSE(refuses(0.99e18F, 1.0F));
  CHECK(refuses(1e18F, 1.0F));
  CHECK(refuses(-1e18F, 1.0F));
  CHECK(refuses(1e38F, 1e38F));
  CHECK(refuses(kNaN, 0.0F));
  CHECK(refuses(kInfinity, 0.0F));
  CHECK_FALSE(refuses(1e30F, 1e-20F));
}

}  // namespace
TEST_CASE("an augmented view has uniform positions and is a function of seed, mini-batch and row") {
  const Augmentation augmentation{.padding = 2, .cutout = 4, .horizontal_flip = true, .seed = 3};
  const ImageSize size{8, 16};
  std::map<std::pair<int, int>, int> places;
  std::map<std::pair<int, int>, int> holes;
  int mirrored = 0;
  constexpr int kViews = 50'000;
  for (int i = 0; i < kViews; ++i) {
    const AugmentedView view =
        augmented_view(augmentation, static_cast<std::uint64_t>(i / 50), static_cast<std::uint32_t>(i % 50), size);
    ++places[{view.top, view.left}];
    ++holes[{view.hole_top, view.hole_left}];
    mirrored += view.is_mirrored ? 1 : 0;
    CHECK((view.hole_bottom - view.hole_top == 4 && view.hole_right - view.hole_left == 4));
  }
  CHECK(places.size() == 25);
  CHECK(places.begin()->first == std::pair(-2, -2));
  for (const auto& [place, count] : places) CHECK(std::abs(count - kViews / 25) < 5 * std::sqrt(kViews / 25));
  CHECK(holes.size() == 8 * 16);
  CHECK(holes.begin()->first == std::pair(-2, -2));
  CHECK(holes.rbegin()->first == std::pair(5, 13));
  for (const auto& [place, count] : holes) CHECK(std::abs(count - kViews / 128) < 5 * std::sqrt(kViews / 128));
  CHECK(std::abs(mirrored - kViews / 2) < 5 * std::sqrt(kViews / 4));
  // Another seed, mini-batch or row gives other numbers.
  const auto drawn = [&](std::uint64_t seed, std::uint64_t task) {
    Augmentation other = augmentation;
    other.seed = seed;
    std::string all;
    for (std::uint32_t row = 0; row < 20; ++row) {
      const AugmentedView view = augmented_view(other, task, row, size);
      all += fmt::format("{} {} {} {} {},", view.top, view.left, view.is_mirrored, view.hole_top, view.hole_left);
    }
    return all;
  };
  CHECK(drawn(3, 0) == drawn(3, 0));
  for (const std::uint64_t task : {std::uint64_t{1}, std::uint64_t{1} << 32}) CHECK(drawn(3, 0) != drawn(3, task));
  for (const std::uint64_t seed : {std::uint64_t{4}, (std::uint64_t{1} << 32) + 3})
    CHECK(drawn(3, 0) != drawn(seed, 0));
}

TEST_CASE("a random crop has the requested area and aspect, anywhere in the image") {
  const RandomResizedCrop crop{.min_area = 0.25F, .log_max_aspect = std::log(2.0F)};
  const ImageSize size{300, 400};
  constexpr int kCrops = 20'000;
  double areas = 0.0;
  double log_aspects = 0.0;
  double products = 0.0;
  double least = 1.0;
  double most = 0.0;
  double longest = 0.0;
  double tops = 0.0;
  double lefts = 0.0;
  double squares_of_tops = 0.0;
  double squares_of_lefts = 0.0;
  double tops_and_lefts = 0.0;
  int count = 0;
  for (int i = 0; i < kCrops; ++i) {
    const Rectangle box =
        random_crop(crop, 3, static_cast<std::uint64_t>(i / 50), static_cast<std::uint32_t>(i % 50), size);
    if (box.height == 0) continue;  // none of the ten attempts fit
    ++count;
    CHECK((box.top >= 0 && box.left >= 0 && box.width > 0));
    CHECK((box.top + box.height <= size.height && box.left + box.width <= size.width));
    const double area = 1.0 * box.height * box.width / (size.height * size.width);
    const double log_aspect = std::log(1.0 * box.width / box.height);
    least = std::min(least, area);
    most = std::max(most, area);
    longest = std::max(longest, std::abs(log_aspect));
    areas += area;
    log_aspects += log_aspect;
    products += area * log_aspect;
    const double top = box.height < size.height ? 1.0 * box.top / (size.height - box.height) : 0.5;
    const double left = box.width < size.width ? 1.0 * box.left / (size.width - box.width) : 0.5;
    tops += top;
    lefts += left;
    squares_of_tops += top * top;
    squares_of_lefts += left * left;
    tops_and_lefts += top * left;
  }
  CHECK(count > 0.999 * kCrops);
  CHECK(least == Approx(0.25).margin(0.005));
  CHECK(most > 0.97);
  CHECK(longest == Approx(std::log(2.0)).margin(0.02));
  // Wide rectangles can fit where tall ones do not, and small ones fit more often. The expected values come from
  // 200,000 draws by an independent ten-line program in another language.
  CHECK(areas / count == Approx(0.5083).margin(0.01));
  CHECK(log_aspects / count == Approx(0.1336).margin(0.02));
  CHECK(products / count == Approx(0.0872).margin(0.01));
  CHECK(tops / count == Approx(0.5).margin(0.02));
  CHECK(lefts / count == Approx(0.5).margin(0.02));
  CHECK(squares_of_tops / count == Approx(1.0 / 3).margin(0.02));
  CHECK(squares_of_lefts / count == Approx(1.0 / 3).margin(0.02));
  CHECK(tops_and_lefts / count == Approx(0.25).margin(0.02));
  // If no such rectangle fits, the result is empty.
  CHECK(random_crop({.min_area = 1.0F, .log_max_aspect = 0.0F}, 3, 1, 1, {10, 1000}).height == 0);
}

TEST_CASE("resampling the whole image at its own size gives the same image") {
  AugmentedView view = augmented_view({}, 12, 3, {2, 3});
  CHECK_FALSE(view.is_resized);
  view.is_resized = true;
  view.row_step = view.column_step = 1.0F;
  const std::array<std::uint8_t, 6> pixels{9, 250, 3, 0, 77, 128};
  std::array<float, 256> normalized{};
  for (std::size_t i = 0; i < normalized.size(); ++i) normalized.at(i) = 0.37F * static_cast<float>(i) - 3.0F;
  for (int i = 0; i < 6; ++i) {
    CHECK(augmented_value(view, ByteChannel{pixels.data(), normalized.data()}, {2, 3}, i / 3, i % 3) ==
          normalized.at(pixels.at(static_cast<std::size_t>(i))));
  }
}

TEST_CASE("without augmentation the view is the whole image") {
  const AugmentedView view = augmented_view({}, 12, 3, {4, 4});
  CHECK((view.top == 0 && view.left == 0 && !view.is_mirrored && view.hole_top == view.hole_bottom));
}

}  // namespace arbalest::engine::elementwise
