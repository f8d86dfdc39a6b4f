// LaneKernels::correlate. This file is a part of engine/cpu/lanes/kernels_body.h.
#pragma once

#include "engine/cpu/lanes/vectors_body.h"

namespace arbalest::engine::cpu {

namespace {

// Number of taps of a kernel row that are correlated at once: their sums and factors stay in registers.
template <int filters>
constexpr int kGroup = filters > 5 ? kNarrow : 5;

// The part of each filter's gradient that is correlated at once: rows [begin, end) of some blocks of examples.
struct Piece {
  Index first_block, blocks;
  Index begin, end;
};

// sums[t, f] += sum over all positions and lanes of `piece`; tap t reads the t-th pixel after `offset` of the input. A
// vector holds a part of a pixel, or neighboring pixels of a row; a row then is a whole number of vectors.
template <typename Arithmetic, int filters, int taps>
void correlate_group(const CorrelationTask task, Index offset, const Piece piece, float* sums) {
  constexpr int width = Arithmetic::kWidth;
  constexpr Index kPixel = Arithmetic::kPixel;
  typename Arithmetic::Sums totals[taps][filters];
  for (int t = 0; t < taps; ++t) {
    for (int f = 0; f < filters; ++f) totals[t][f] = vector_at<width>(sums + (t * filters + f) * width);
  }
  // Both rows are read from end to end, or in several passes over a part of each pixel.
  const bool whole = task.stride_x == 1 || width >= kPixel;
  const Index part = whole ? kPixel : width;
  const Index step = whole ? width : kPixel;
  const Index input_step = task.stride_x * step;
  for (Index block = piece.first_block; block < piece.first_block + piece.blocks; ++block) {
    for (Index first = 0; first < kPixel; first += part) {
      const LaneUnit* input = task.input + block * task.input_block + offset + first;
      const LaneUnit* gradient = task.gradient + block * task.gradient_block + first;
      for (Index y = piece.begin; y < piece.end; ++y) {
        const LaneUnit* pixels = input + y * task.stride_y * task.input_row;
        const LaneUnit* arriving = gradient + y * task.width * kPixel;
        const LaneUnit* const end = arriving + task.width * kPixel;
        for (; arriving < end; arriving += step, pixels += input_step) {
          // The smaller set of factors stays in registers; the others are loaded one by one. Without the asm statement
          // GCC reloads such a factor for each product, which takes 1.25 times as long.
          typename Arithmetic::Units held[filters < taps ? filters : taps];
          if constexpr (filters <= taps) {
            for (int f = 0; f < filters; ++f) held[f] = Arithmetic::load(arriving + f * task.gradient_plane);
#pragma GCC unroll 8
            for (int t = 0; t < taps; ++t) {
              auto pixel = Arithmetic::load(pixels + t * kPixel);
              __asm__("" : "+v"(pixel));
#pragma GCC unroll 8
              for (int f = 0; f < filters; ++f) totals[t][f] = Arithmetic::add_product(totals[t][f], held[f], pixel);
            }
          } else {
            for (int t = 0; t < taps; ++t) held[t] = Arithmetic::load(pixels + t * kPixel);
#pragma GCC unroll 8
            for (int f = 0; f < filters; ++f) {
              auto factor = Arithmetic::load(arriving + f * task.gradient_plane);
              __asm__("" : "+v"(factor));
#pragma GCC unroll 8
              for (int t = 0; t < taps; ++t) totals[t][f] = Arithmetic::add_product(totals[t][f], factor, held[t]);
            }
          }
        }
      }
    }
  }
  for (int t = 0; t < taps; ++t) {
    for (int f = 0; f < filters; ++f) vector_at<width>(sums + (t * filters + f) * width) = totals[t][f];
  }
}

// The sums of the elements of `width` vectors, as one vector. Neighbors are added until one number of each vector is
// left: first within quarters of 128 bits, which one instruction shuffles, then whole quarters.
template <int width>
void add_elements(float* vectors, float* totals) {
  using Vector = typename VectorOf<width>::Type;
  constexpr int kQuarter = 4;
  typename VectorOf<width>::Order even, odd, even_quarters, odd_quarters;
  for (int i = 0; i < width; ++i) {
    const int quarter = i / kQuarter;
    even[i] = (i % kQuarter < 2 ? 0 : width) + quarter * kQuarter + i % 2 * 2;
    odd[i] = even[i] + 1;
    even_quarters[i] = 2 * quarter * kQuarter + i % kQuarter;
    odd_quarters[i] = even_quarters[i] + kQuarter;
  }
  Vector left[width];
  for (int i = 0; i < width; ++i) left[i] = vector_at<width>(vectors + i * width);
#pragma GCC unroll 4
  for (int count = width / 2; count > 0; count /= 2) {
    const bool within = count >= width / kQuarter;
    for (int i = 0; i < count; ++i) {
      const Vector a = left[2 * i];
      const Vector b = left[2 * i + 1];
      left[i] = within ? __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd)
                       : __builtin_shuffle(a, b, even_quarters) + __builtin_shuffle(a, b, odd_quarters);
    }
  }
  vector_at<width>(totals) = left[0];
}

template <typename Arithmetic, int filters>
void sum_biases(const CorrelationTask task) {
  constexpr int width = Arithmetic::kWidth;
  constexpr Index kAtOnce = 4;  // independent sums, so that an addition need not wait for the previous one
  const Index units = task.height * task.width * Arithmetic::kPixel;
  for (int f = 0; f < filters; ++f) {
    typename Arithmetic::Sums lanes[kAtOnce] = {};
    for (Index block = 0; block < task.blocks; ++block) {
      const LaneUnit* plane = task.gradient + block * task.gradient_block + f * task.gradient_plane;
      Index i = 0;
      for (; i + kAtOnce * width <= units; i += kAtOnce * width) {
        for (Index s = 0; s < kAtOnce; ++s) {
          lanes[s] = Arithmetic::add(lanes[s], Arithmetic::load(plane + i + s * width));
        }
      }
      for (; i < units; i += width) lanes[0] = Arithmetic::add(lanes[0], Arithmetic::load(plane + i));
    }
    const typename Arithmetic::Sums all = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
    float total = 0.0F;
    for (int i = 0; i < width; ++i) total += all[i];
    task.bias_gradient[f] = total;
  }
}

// The number of blocks, or of rows of one block, that stay in the first-level cache for all groups of taps.
template <typename Arithmetic, int filters>
Piece largest_piece(const CorrelationTask& task) {
  const Index units = Arithmetic::kCorrelatedBytes / static_cast<Index>(sizeof(LaneUnit));
  const Index shared = (task.kernel_height - task.stride_y) * task.input_row;
  const Index row = filters * task.width * Arithmetic::kPixel + task.stride_y * task.input_row;
  const Index blocks = units / (shared + task.height * row);
  if (blocks > 0 || !Arithmetic::kSplitsImages) return {0, blocks > 0 ? blocks : 1, 0, task.height};
  const Index rows = (units - shared) / row;
  return {0, 1, 0, rows > 0 ? rows : 1};
}

template <typename Arithmetic, int filters>
void correlate_filters(const CorrelationTask task) {
  constexpr int width = Arithmetic::kWidth;
  constexpr Index kVectors = kMaxCorrelatedTaps * filters + width;  // rounded up to a whole number of add_elements
  const Index taps = task.kernel_height * task.kernel_width;
  const Index vectors = task.channels * taps * filters;
  alignas(64) float sums[kVectors * width];  // [channels, taps, filters] vectors
  alignas(64) float totals[kVectors];
  for (Index i = 0; i < (vectors + width) * width; ++i) sums[i] = 0.0F;
  using Correlate = void (*)(CorrelationTask, Index, Piece, float*);
  constexpr int kMost = kGroup<filters>;
  constexpr int kFour = kMost < 4 ? kMost : 4;
  constexpr Correlate kBySize[] = {correlate_group<Arithmetic, filters, 1>, correlate_group<Arithmetic, filters, 2>,
                                   correlate_group<Arithmetic, filters, 3>, correlate_group<Arithmetic, filters, kFour>,
                                   correlate_group<Arithmetic, filters, kMost>};
  const Piece largest = largest_piece<Arithmetic, filters>(task);
  for (Index block = 0; block < task.blocks; block += largest.blocks) {
    for (Index y = 0; y < task.height; y += largest.end) {
      const Index blocks = task.blocks - block < largest.blocks ? task.blocks - block : largest.blocks;
      const Piece piece{block, blocks, y, y + largest.end < task.height ? y + largest.end : task.height};
      float* group_sums = sums;
      for (Index channel = 0; channel < task.channels; ++channel) {
        for (Index i = 0; i < task.kernel_height; ++i) {
          for (Index j = 0; j < task.kernel_width; j += kMost) {
            const Index size = task.kernel_width - j < kMost ? task.kernel_width - j : kMost;
            const Index offset = channel * task.input_plane + i * task.input_row + j * Arithmetic::kPixel;
            kBySize[size - 1](task, offset, piece, group_sums);
            group_sums += size * filters * width;
          }
        }
      }
    }
  }
  for (Index i = 0; i < vectors; i += width) add_elements<width>(sums + i * width, totals + i);
  for (Index tap = 0; tap < task.channels * taps; ++tap) {
    for (Index f = 0; f < filters; ++f) task.weights_gradient[tap * task.weight_step + f] = totals[tap * filters + f];
  }
  if (task.bias_gradient != nullptr) sum_biases<Arithmetic, filters>(task);
}

template <typename Arithmetic, int max>
void correlate(Index filters, const CorrelationTask& task) {
  if constexpr (max > 0) {
    if (filters == max) return correlate_filters<Arithmetic, max>(task);
    correlate<Arithmetic, max - 1>(filters, task);
  }
}

}  // namespace

}  // namespace arbalest::engine::cpu
