#include "tests/cuda_stand_in/tensor_products.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "tests/cuda_stand_in/state.h"
#include "tests/cuda_stand_in/warp.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

using engine::cuda::BFloat16Pair;
using engine::cuda::Tf32;

constexpr unsigned kRows = 16;
constexpr unsigned kColumns = 8;

// The numbers of one lane.
template <typename Factors>
struct Fragments {
  float (&d)[4];
  const Factors (&a)[4];
  const Factors (&b)[2];
  int line;
};

template <unsigned kDepth>
struct Matrices {
  float a[kRows][kDepth];
  float b[kDepth][kColumns];
};

// The lanes hold the numbers as the figures of "Matrix Fragments for mma.m16n8k8" and "... mma.m16n8k16" in the PTX ISA
// show.
void gather(unsigned lane, const Fragments<Tf32>& of, Matrices<8>& to) {
  const unsigned group = lane / 4;
  const unsigned place = lane % 4;
  for (unsigned i = 0; i < 4; ++i) to.a[group + i % 2 * 8][place + i / 2 * 4] = std::bit_cast<float>(of.a[i].bits);
  for (unsigned i = 0; i < 2; ++i) to.b[place + i * 4][group] = std::bit_cast<float>(of.b[i].bits);
}

float to_float(engine::BFloat16 number) { return std::bit_cast<float>(std::uint32_t{number.bits} << 16U); }

void gather(unsigned lane, const Fragments<BFloat16Pair>& of, Matrices<16>& to) {
  const unsigned group = lane / 4;
  const unsigned place = lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    float* row = to.a[group + i % 2 * 8] + place * 2 + i / 2 * 8;
    row[0] = to_float(of.a[i].first);
    row[1] = to_float(of.a[i].second);
  }
  for (unsigned i = 0; i < 2; ++i) {
    to.b[place * 2 + i * 8][group] = to_float(of.b[i].first);
    to.b[place * 2 + i * 8 + 1][group] = to_float(of.b[i].second);
  }
}

// Calls use(number, row, column) for the numbers of d.
template <typename Use>
void for_sums(unsigned lane, float (&d)[4], const Use& use) {
  for (unsigned i = 0; i < 4; ++i) use(d[i], lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2);
}

template <typename Factors, unsigned kDepth>
void multiply(void* const* lanes) {
  const auto of = [&](unsigned lane) -> auto& { return *static_cast<const Fragments<Factors>*>(lanes[lane]); };
  Matrices<kDepth> factors;
  float sums[kRows][kColumns];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    gather(lane, of(lane), factors);
    for_sums(lane, of(lane).d, [&](float sum, unsigned row, unsigned column) { sums[row][column] = sum; });
  }
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned k = 0; k < kDepth; ++k) {
      for (unsigned column = 0; column < kColumns; ++column) {
        sums[row][column] += factors.a[row][k] * factors.b[k][column];
      }
    }
  }
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    for_sums(lane, of(lane).d, [&](float& sum, unsigned row, unsigned column) { sum = sums[row][column]; });
  }
}

template <unsigned kDepth, typename Factors>
void multiply_together(const char* name, Fragments<Factors> own) {
  if (meet_warp({name, multiply<Factors, kDepth>}, kWholeWarp, own.line, &own)) return;
  std::ranges::fill(own.d, std::numeric_limits<float>::quiet_NaN());
}

bool is_rounded(Tf32 factor) {
  return (factor.bits & 0x1FFFU) == 0 || (factor.bits & 0x7FFF'FFFFU) > 0x7F80'0000U;  // or NaN
}

}  // namespace

void multiply_add(float (&d)[4], const Tf32 (&a)[4], const Tf32 (&b)[2], int line) {
  if (!std::ranges::all_of(a, is_rounded) || !std::ranges::all_of(b, is_rounded)) {
    violation(fmt::format("a kernel: a factor of the multiply_add_tf32 in line {} was not rounded to TF32", line));
  }
  multiply_together<8>("multiply_add_tf32", Fragments<Tf32>{d, a, b, line});
}

void multiply_add(float (&d)[4], const BFloat16Pair (&a)[4], const BFloat16Pair (&b)[2], int line) {
  multiply_together<16>("multiply_add_bf16", Fragments<BFloat16Pair>{d, a, b, line});
}

}  // namespace arbalest::tests::cuda_stand_in
