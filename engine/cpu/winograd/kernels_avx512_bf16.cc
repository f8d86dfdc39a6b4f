// Compiled for AVX-512 with bfloat16: this code must not run on other processors.
#include <immintrin.h>

#include "engine/cpu/winograd/kernels.h"

namespace arbalest::engine::cpu {

namespace {

using Index = std::int64_t;

constexpr Index kWidth = 16;  // units of a vector
static_assert(kLanes == kWidth);

__m512 widen(__m256i halves) {
  constexpr unsigned kShift = 16;
  constexpr __mmask16 kAll = 0xFFFF;  // GCC 12 warns of intrinsics without a mask
  const __m512i words = _mm512_maskz_cvtepu16_epi32(kAll, halves);
  return reinterpret_cast<__m512>(_mm512_maskz_slli_epi32(kAll, words, kShift));
}

__m512 load(const BFloat16* pixel) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pixel))); }

void store_zeros(BFloat16* pixel) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(pixel), _mm256_setzero_si256()); }

// Rounds two vectors to bfloat16 and concatenates them.
__m512i round_both(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// Order of elements that turns two concatenated vectors into units.
__m512i interleaving() {
  alignas(64) std::uint16_t order[2 * kWidth];
  for (Index i = 0; i < kWidth; ++i) {
    order[2 * i] = static_cast<std::uint16_t>(i);
    order[2 * i + 1] = static_cast<std::uint16_t>(kWidth + i);
  }
  return _mm512_load_si512(order);
}

// Holds the same pixels of two planes or rows.
struct Both {
  __m512 first, second;
};
Both operator+(Both a, Both b) { return {a.first + b.first, a.second + b.second}; }
Both operator-(Both a, Both b) { return {a.first - b.first, a.second - b.second}; }

// Rows of pixels surrounded by zeros; second null: zeros.
struct TwoRows {
  const BFloat16* first;
  const BFloat16* second;
  Index width;

  Both operator[](Index x) const {
    const __m512 zeros = _mm512_setzero_ps();
    if (x < 0 || x >= width) return {zeros, zeros};
    return {load(first + x * kLanes), second == nullptr ? zeros : load(second + x * kLanes)};
  }
};

// Calls put(component, tile, both) for each component of B' d.
template <typename Put>
void transform_tiles(const TwoRows& rows, const Put& put) {
  Both d0 = rows[-1];
  Both d1 = rows[0];
  for (Index tile = 0; tile < rows.width / kTile; ++tile) {
    const Both d2 = rows[tile * kTile + 1];
    const Both d3 = rows[tile * kTile + 2];
    put(0, tile, d0 - d2);
    put(1, tile, d1 + d2);
    put(2, tile, d2 - d1);
    put(3, tile, d1 - d3);
    d0 = d2;
    d1 = d3;
  }
}

// Writes rows y and y + 1 of components in the layout for correlations.
struct RowsOfComponents {
  Index rows;
  Index component;
  BFloat16* to;

  void operator()(Index k, Index tile, Both rounded) const {
    _mm512_storeu_si512(to + k * component + tile * rows * kLanes, round_both(rounded.first, rounded.second));
  }
};

TwoRows rows_of(const BFloat16* plane, Index y, Index width) {
  return {plane + y * width * kLanes, plane + (y + 1) * width * kLanes, width};
}

// Loads up to 16 weights of two channels for one tap.
Both load_weights(const BFloat16* first, const BFloat16* second, __mmask16 mask) {
  const auto read = [&](const BFloat16* from) { return widen(_mm256_maskz_loadu_epi16(mask, from)); };
  return {read(first), second == nullptr ? _mm512_setzero_ps() : read(second)};
}

Both halved(Both numbers) {
  const __m512 half = _mm512_set1_ps(0.5F);
  return {numbers.first * half, numbers.second * half};
}

// Filters of the group that starts at filter `begin`: 3, or 2 in the last groups.
Index filters_from(Index begin, Index filters) {
  const Index groups_of_two = (3 - filters % 3) % 3;
  return begin < filters - 2 * groups_of_two ? 3 : 2;
}

// Transforms the sums of a tile back to pixels, and writes them.
template <int filters>
[[gnu::always_inline]] inline void write_tile(const WinogradRows& of, Index begin, Index tile,
                                              const __m512 (&sums)[kTile][kComponents][filters]) {
#pragma GCC unroll 2
  for (int r = 0; r < kTile; ++r) {
#pragma GCC unroll 3
    for (int f = 0; f < filters; ++f) {
      const auto& m = sums[r];
      const __m512 bias = _mm512_set1_ps(of.bias == nullptr ? 0.0F : of.bias[begin + f]);
      const auto finished = [&](__m512 sum) { return of.relu ? (sum < 0.0F ? __m512{} : sum) : sum; };
      const __m512 left = finished(m[0][f] + m[1][f] + m[2][f] + bias);
      const __m512 right = finished(m[1][f] - m[2][f] - m[3][f] + bias);
      BFloat16* to = of.output + (((begin + f) * of.height + of.row + r) * of.width + tile * kTile) * kLanes;
      _mm512_storeu_si512(to, round_both(left, right));
    }
  }
}

// Keeps in registers the sums of a few filters, two rows, and all components of a tile. `above`, `below`: whether the
// image has a row above the first row and below the second; rows of zeros are not multiplied.
template <int filters, bool above, bool below>
void convolve_tile(const WinogradRows& of, Index begin, Index tile) {
  typedef int Word __attribute__((may_alias));
  constexpr int kUnrolled = kComponents;
  const Index row = of.width / kTile * kComponents * kLanes;
  const Index plane = of.height * row;
  const LaneUnit* source = of.images + of.row * row + tile * kComponents * kLanes;
  const LaneUnit* const end = source + of.pairs * plane;
  const LaneUnit* weights = of.weights + begin * of.pairs * kRows * kComponents;
  __m512 sums[kTile][kComponents][filters];  // for each row
  for (int r = 0; r < kTile; ++r) {
    for (int k = 0; k < kComponents; ++k) {
      for (int f = 0; f < filters; ++f) sums[r][k][f] = _mm512_setzero_ps();
    }
  }
  for (; source != end; source += plane, weights += kRows * kComponents * filters) {
#pragma GCC unroll 4
    for (int k = 0; k < kUnrolled; ++k) {
      // Without this asm statement GCC loads all pixels far ahead and spills sums.
      const auto pixel = [&](Index y) {
        auto vector = reinterpret_cast<__m512bh>(_mm512_loadu_si512(source + y * row + k * kLanes));
        __asm__("" : "+v"(vector));
        return vector;
      };
      const auto weight = [&](int i, int f) {
        const LaneUnit* unit = weights + (i * kComponents + k) * filters + f;
        auto vector = reinterpret_cast<__m512bh>(_mm512_set1_epi32(*reinterpret_cast<const Word*>(unit)));
        __asm__("" : "+v"(vector));
        return vector;
      };
      const auto add = [&](int r, int f, __m512bh a, __m512bh b) {
        sums[r][k][f] = _mm512_dpbf16_ps(sums[r][k][f], a, b);
      };
      const __m512bh first = pixel(0);
      const __m512bh second = pixel(1);
#pragma GCC unroll 3
      for (int f = 0; f < filters; ++f) {
        const __m512bh factor = weight(1, f);
        add(0, f, first, factor);
        add(1, f, second, factor);
      }
      __m512bh next{};
      if constexpr (below) next = pixel(2);
#pragma GCC unroll 3
      for (int f = 0; f < filters; ++f) {
        const __m512bh factor = weight(2, f);
        add(0, f, second, factor);
        if constexpr (below) add(1, f, next, factor);
      }
      if constexpr (above) next = pixel(-1);
#pragma GCC unroll 3
      for (int f = 0; f < filters; ++f) {
        const __m512bh factor = weight(0, f);
        add(1, f, first, factor);
        if constexpr (above) add(0, f, next, factor);
      }
    }
  }
  write_tile<filters>(of, begin, tile, sums);
}

template <bool above, bool below>
void convolve_tiles(const WinogradRows& of) {
  for (Index tile = 0; tile < of.width / kTile; ++tile) {
    for (Index begin = 0, count = 0; begin < of.filters; begin += count) {
      count = filters_from(begin, of.filters);
      if (count == 3) {
        convolve_tile<3, above, below>(of, begin, tile);
      } else {
        convolve_tile<2, above, below>(of, begin, tile);
      }
    }
  }
}

}  // namespace

void transform_channels(Index height, Index width, const BFloat16* first, const BFloat16* second, LaneUnit* to) {
  const __m512i order = interleaving();
  const Index row = width * kLanes;
  for (Index y = 0; y < height; ++y, to += width / kTile * kComponents * kLanes) {
    transform_tiles({first + y * row, second == nullptr ? nullptr : second + y * row, width},
                    [&](Index k, Index tile, Both rounded) {
                      _mm512_storeu_si512(to + (tile * kComponents + k) * kLanes,
                                          _mm512_permutexvar_epi16(order, round_both(rounded.first, rounded.second)));
                    });
  }
}

void transform_weights(Index channels, Index filters, bool reversed, const BFloat16* weights, LaneUnit* to) {
  const __m512i order = interleaving();
  const Index pairs = (channels + 1) / 2;
  const Index plane = kRows * kRows * filters;
  const auto number = [&](Index i) { return reversed ? kRows - 1 - i : i; };
  for (Index pair = 0; pair < pairs; ++pair) {
    const BFloat16* first = weights + 2 * pair * plane;
    const BFloat16* second = 2 * pair + 1 < channels ? first + plane : nullptr;
    for (Index i = 0; i < kRows; ++i) {
      Index begin = 0;
      Index count = filters_from(begin, filters);
      for (Index f = 0; f < filters; f += kWidth) {
        const Index left = filters - f;
        const auto mask = static_cast<__mmask16>(left < kWidth ? (1U << static_cast<unsigned>(left)) - 1U : 0xFFFFU);
        Both g[kRows];
        for (Index j = 0; j < kRows; ++j) {
          const Index at = (number(i) * kRows + number(j)) * filters + f;
          g[j] = load_weights(first + at, second == nullptr ? nullptr : second + at, mask);
        }
        const Both components[] = {g[0], halved(g[0] + g[1] + g[2]), halved(g[0] - g[1] + g[2]), g[2]};
        LaneUnit units[kComponents][kWidth];
        for (Index k = 0; k < kComponents; ++k) {
          const __m512i rounded = round_both(components[k].first, components[k].second);
          _mm512_storeu_si512(units[k], _mm512_permutexvar_epi16(order, rounded));
        }
        for (Index n = 0; n < kWidth && n < left; ++n) {
          if (f + n == begin + count) {
            begin += count;
            count = filters_from(begin, filters);
          }
          LaneUnit* unit = to + kComponents * (begin * pairs * kRows + (pair * kRows + i) * count) + f + n - begin;
          for (Index k = 0; k < kComponents; ++k) unit[k * count] = units[k][n];
        }
      }
    }
  }
}

void convolve_rows(const WinogradRows& rows) {
  const bool above = rows.row > 0;
  const bool below = rows.row + kTile < rows.height;
  if (above && below) return convolve_tiles<true, true>(rows);
  if (above) return convolve_tiles<true, false>(rows);
  if (below) return convolve_tiles<false, true>(rows);
  convolve_tiles<false, false>(rows);
}

void transform_input(Index height, Index width, const BFloat16* plane, Index component, BFloat16* to) {
  const Index rows = height + 2;
  for (Index k = 0; k < kComponents; ++k) {
    for (Index tile = 0; tile < width / kTile; ++tile) {
      BFloat16* column = to + k * component + tile * rows * kLanes;
      store_zeros(column);
      store_zeros(column + (rows - 1) * kLanes);
    }
  }
  for (Index y = 0; y < height; y += 2) {
    const RowsOfComponents put{rows, component, to + (y + 1) * kLanes};
    transform_tiles(rows_of(plane, y, width), [&](Index k, Index tile, Both rounded) {
      put(k, tile, k == kComponents - 1 ? Both{-rounded.first, -rounded.second} : rounded);
    });
  }
}

void transform_gradient(Index height, Index width, const BFloat16* plane, Index component, BFloat16* to) {
  for (Index y = 0; y < height; y += 2) {
    const RowsOfComponents put{height, component, to + y * kLanes};
    const TwoRows rows = rows_of(plane, y, width);
    for (Index tile = 0; tile < width / kTile; ++tile) {
      const Both left = rows[tile * kTile];
      const Both right = rows[tile * kTile + 1];
      put(0, tile, left);
      put(1, tile, left + right);
      put(2, tile, left - right);
      put(3, tile, right);
    }
  }
}

}  // namespace arbalest::engine::cpu
