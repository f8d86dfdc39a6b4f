// Safetensors files of other programs: types that are converted, and types that are not.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/error.h"
#include "saved_model/half.h"
#include "saved_model/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"

namespace arbalest::jobs {
namespace {

using tests::TemporaryDirectory;

// A file with this header and these bytes behind it.
std::string file_with(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  std::string file(sizeof(size), '\0');
  std::memcpy(file.data(), &size, sizeof(size));
  return file + header + data;
}

template <typename T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<StoredTensor> read(const std::string& bytes) {
  const TemporaryDirectory directory;
  tests::write_text(directory / "x.safetensors", bytes);
  return read_stored_tensors(directory / "x.safetensors");
}

std::string refusal(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const engine::Error& error) {
    CHECK(error.kind() == engine::ErrorKind::kCheckpoint);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("half precision: every finite number is converted by the formula of IEEE 754") {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const std::uint32_t exponent = (bits >> 10U) & 31U;
    const auto fraction = static_cast<double>(bits & 1023U);
    const double magnitude = exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1.0 + fraction / 1024.0, static_cast<int>(exponent) - 15);
    const float value = from_half(static_cast<std::uint16_t>(bits));
    if (std::signbit(value) != (bits >= 0x8000U)) FAIL("the sign of " << bits);
    if (exponent < 31U && std::abs(static_cast<double>(value)) != magnitude) FAIL("the value of " << bits);
    if (exponent == 31U && std::isnan(value) != (fraction != 0.0)) FAIL("the kind of " << bits);
    if (exponent == 31U && std::isfinite(value)) FAIL("a finite value of " << bits);
  }
}

TEST_CASE("half precision: numbers are rounded to the nearest, halfway to the even one") {
  constexpr std::uint16_t kLargest = 0x7BFFU;
  for (std::uint16_t bits = 0; bits < kLargest; ++bits) {
    const float low = from_half(bits);
    const float high = from_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = (low + high) / 2.0F;  // exact
    const std::uint16_t even = bits % 2U == 0U ? bits : static_cast<std::uint16_t>(bits + 1);
    if (to_half(low) != bits) FAIL("the number " << low);
    if (to_half(middle) != even) FAIL("halfway between " << low << " and " << high);
    if (to_half(std::nextafter(middle, 0.0F)) != bits) FAIL("below the middle of " << low << " and " << high);
    if (to_half(std::nextafter(middle, high)) != bits + 1) FAIL("above the middle of " << low << " and " << high);
    if (to_half(-middle) != (even | 0x8000U)) FAIL("the sign of " << -middle);
  }
  CHECK(from_half(to_half(65519.0F)) == 65504.0F);
  CHECK(std::isinf(from_half(to_half(65520.0F))));
  CHECK(from_half(to_half(-std::numeric_limits<float>::infinity())) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(from_half(to_half(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("safetensors: F32, F16 and BF16 are read as float32, other types without values") {
  const std::vector<StoredTensor> tensors =
      read(file_with(R"({"i":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                     R"("f":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                     R"("h":{"dtype":"F16","shape":[2,1],"data_offsets":[12,16]},)"
                     R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[16,22]},)"
                     R"("u":{"dtype":"BOOL","shape":[1,3],"data_offsets":[22,25]}})",
                     bytes_of<std::int64_t>({100}) + bytes_of<float>({0.1F}) +
                         bytes_of<std::uint16_t>({0x3C00, 0xC500, 0x3F80, 0xBE80, 0x4049}) + "abc"));
  REQUIRE(tensors.size() == 5);
  CHECK(tensors[0].dtype == "I64");
  CHECK_FALSE(tensors[0].has_values());
  CHECK(tensors[0].tensor.shape.rank() == 0);
  CHECK(tensors[1].tensor.values == std::vector<float>{0.1F});
  CHECK(tensors[2].tensor.values == std::vector<float>{1.0F, -5.0F});
  CHECK(tensors[2].tensor.shape == engine::Shape{2, 1});
  CHECK(tensors[3].tensor.values == std::vector<float>{1.0F, -0.25F, 3.140625F});
  CHECK(tensors[4].tensor.name == "u");
  CHECK(tensors[4].tensor.values.empty());
}

TEST_CASE("safetensors: sizes are checked for every type") {
  const auto one = [](const std::string& type, const std::string& shape, std::size_t bytes) {
    const std::string header = R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" +
                               std::to_string(bytes) + "]}}";
    return refusal(file_with(header, std::string(bytes, '\0')));
  };
  CHECK(one("F16", "[2]", 4) == "accepted");
  CHECK_THAT(one("F16", "[2]", 8), ContainsSubstring("tensor 'a' has 8 bytes, but its shape needs 4"));
  CHECK_THAT(one("I64", "[2]", 8), ContainsSubstring("tensor 'a' has 8 bytes, but its shape needs 16"));
  CHECK_THAT(one("U8", "[4611686018427387904,4]", 0), ContainsSubstring("overflows"));
  CHECK_THAT(one("F4", "[2]", 8), ContainsSubstring("tensor 'a' is of the unknown type 'F4'"));
}

}  // namespace arbalest::jobs
