// The loops of convolutions on tensors whose examples lie side by side (engine/cpu/lanes.h), for one instruction set
// and type of elements. A vector holds the same pixel of some of the kLanes examples of a block, or neighboring pixels
// of all of them; a weight is one number for all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/bfloat16.h"

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kLanes = 16;

// Kernels of more taps have other implementations.
inline constexpr std::int64_t kMaxTaps = 64;

// Kernels of up to so many columns leave registers for the sums of more filters.
inline constexpr std::int64_t kNarrow = 3;

// What a CorrelationTask's channels have together, at most.
inline constexpr std::int64_t kMaxCorrelatedTaps = 2 * kMaxTaps;

// What is multiplied: a float32; or two bfloat16, whose two products go into one float32 sum.
struct alignas(4) LaneUnit {
  std::byte bytes[4];
};

// What reaches a position along one axis: `count` taps from number `tap` on, the first of which reads pixel `source`.
struct Taps {
  std::int64_t source;
  std::int64_t tap;
  std::int64_t count;
};

// One row of a target for a few of its channels c, for one vector of examples or two:
//   target[c, p] = bias[c] + sum over channels k and taps (i, j) of source[k, y_i, x_j] * weights[k, i, j, c]
// Distances are in units, those of the target in elements. A unit of bfloat16 has a number of each of two channels k,
// or of two neighboring taps j.
struct RowTask {
  const LaneUnit* source;
  std::int64_t channels;  // k, in units
  std::int64_t source_plane;
  std::int64_t source_row;
  std::int64_t source_pair;  // from one vector to the other
  const LaneUnit* weights;   // [channels, kernel_height, kernel_width, weight_step] from the first c on
  std::int64_t kernel_height;
  std::int64_t kernel_width;  // in pairs if those are of taps
  std::int64_t weight_step;
  const float* bias;  // null: zeros
  void* target;
  std::int64_t target_offset;  // of the row
  std::int64_t target_plane;
  std::int64_t target_pair;
  std::int64_t positions;  // p
  Taps y;
  const Taps* x;               // by position
  std::int64_t source_step_y;  // pixels from what a tap, or pair, reads to what the next one reads
  std::int64_t source_step_x;
  std::int64_t tap_step_y;  // from the number of a tap to that of the next one
  std::int64_t tap_step_x;
  bool adds;  // to what the target holds, instead of the bias; only where LaneKernels::cache_bytes is not 0
  bool relu;  // max(0, .) of the sum; NaN stays
};

// The gradient of the weights between a few channels c of the input and a few filters f, and of the filters' biases:
//   weights_gradient[c, i, j, f] = sum over examples and positions of
//                                  gradient[f, y, x] * input[c, y * stride_y + i, x * stride_x + j]
// Distances are in units. A unit of bfloat16 has a number of each of two examples.
struct CorrelationTask {
  std::int64_t blocks;    // of kLanes examples
  const LaneUnit* input;  // of the first c
  std::int64_t channels;  // c
  std::int64_t input_block;
  std::int64_t input_plane;
  std::int64_t input_row;
  const LaneUnit* gradient;  // of the output
  std::int64_t gradient_block;
  std::int64_t gradient_plane;
  std::int64_t height;  // of the output
  std::int64_t width;
  std::int64_t stride_y;
  std::int64_t stride_x;
  std::int64_t kernel_height;
  std::int64_t kernel_width;
  float* weights_gradient;  // [channels, kernel_height, kernel_width, weight_step] from the first f on
  std::int64_t weight_step;
  float* bias_gradient;  // null: not wanted
};

struct LaneKernels {
  std::int64_t elements;      // of a unit: 1 float32 or 2 bfloat16
  std::int64_t vector;        // of row, in units: kLanes, or a part of them
  std::int64_t cache_bytes;   // what of its factors a row should read again and again; 0: no matter how much
  std::int64_t max_channels;  // c at a time
  void (*row)(std::int64_t channels, std::int64_t vectors, const RowTask& task);
  std::int64_t max_filters;            // f at a time
  std::int64_t max_filters_if_narrow;  // of kernels of up to kNarrow columns
  void (*correlate)(std::int64_t filters, const CorrelationTask& task);
};

extern const LaneKernels kAvx2LaneKernels;
extern const LaneKernels kAvx512LaneKernels;      // only on a processor that has AVX-512
extern const LaneKernels kAvx512Bf16LaneKernels;  // only on a processor that has avx512_bf16

// The widest for the processor that runs this, float32.
const LaneKernels& lane_kernels();
// Null where the processor does not multiply bfloat16.
const LaneKernels* bfloat16_lane_kernels();

// Units of `count` numbers of `first` and as many of `second`; null: zeros.
void pack(std::int64_t count, const BFloat16* first, const BFloat16* second, LaneUnit* to);
// [groups, planes, plane] as [groups, planes / 2, plane] units of neighboring planes; a last one without a neighbor
// gets zeros.
void pack_planes(int threads, std::int64_t groups, std::int64_t planes, std::int64_t plane, const BFloat16* from,
                 LaneUnit* to);
// Planes of pixels [planes, plane] as units of neighboring pixels, each pixel with the next one; the last of a plane
// gets zeros. Where a row of taps is odd, weights of zero meet the pixel behind it: if that is not finite, nor is the
// sum.
void pack_neighbors(int threads, std::int64_t planes, std::int64_t plane, const BFloat16* from, LaneUnit* to);

}  // namespace arbalest::engine::cpu
