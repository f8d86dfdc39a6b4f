#include "tests/cuda_stand_in/numbers.h"

#include <cmath>
#include <cstdint>
#include <cstring>

namespace arbalest::tests::cuda_stand_in {

namespace {

// Rounds `value` to the nearest number with `bits` significant bits, ties to even.
double rounded(double value, int bits) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, bits)), exponent - bits);
}

constexpr int kTensorFloat32Bits = 11;
constexpr int kBFloat16Bits = 8;

// The two bytes of a bfloat16 are the upper ones of a float32.
float from_upper_half(std::uint16_t upper) {
  const std::uint32_t bits = std::uint32_t{upper} << 16U;
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::uint16_t upper_half(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>(bits >> 16U);
}

double read_exactly(Number number, const void* data, std::size_t index) {
  if (number == Number::kBFloat16)
    return static_cast<double>(from_upper_half(static_cast<const std::uint16_t*>(data)[index]));
  return static_cast<double>(static_cast<const float*>(data)[index]);
}

}  // namespace

std::size_t size_of(Number number) { return number == Number::kBFloat16 ? sizeof(std::uint16_t) : sizeof(float); }

double read(Number number, const void* data, std::size_t index) {
  const double value = read_exactly(number, data, index);
  return number == Number::kTensorFloat32 ? rounded(value, kTensorFloat32Bits) : value;
}

void write(Number number, Scaling scaling, double value, void* data, std::size_t index) {
  const double before = scaling.beta == 0 ? 0 : static_cast<double>(scaling.beta) * read_exactly(number, data, index);
  const double result = static_cast<double>(scaling.alpha) * value + before;
  if (number == Number::kBFloat16) {
    static_cast<std::uint16_t*>(data)[index] = upper_half(static_cast<float>(rounded(result, kBFloat16Bits)));
  } else {
    static_cast<float*>(data)[index] = static_cast<float>(result);
  }
}

}  // namespace arbalest::tests::cuda_stand_in
