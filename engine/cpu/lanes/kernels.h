// The loops of convolutions on tensors with interleaved examples (engine/cpu/lanes/lanes.h), for one instruction set
// and element type. A vector holds the same pixel of some of the kLanes examples of a block, or neighboring pixels of
// all of them. A weight is one number for all examples.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/bfloat16.h"

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kLanes = 16;

// Convolutions with more taps use other implementations.
inline constexpr std::int64_t kMaxTaps = 64;

// Kernels with up to this many columns leave registers for the sums of more filters.
inline constexpr std::int64_t kNarrow = 3;

// Limit of taps over all channels of a CorrelationTask.
inline constexpr std::int64_t kMaxCorrelatedTaps = 2 * kMaxTaps;

// The unit of multiplication: one float32; or two bfloat16, whose two products go into one float32 sum.
struct alignas(4) LaneUnit {
  std::byte bytes[4];
};

// The taps that reach a position along one axis: `count` taps from number `tap` on; the first reads pixel `source`.
struct Taps {
  std::int64_t source;
  std::int64_t tap;
  std::int64_t count;
};

// Computes one row of a target for a few of its channels c, for one vector of examples or two:
//   target[c, p] = bias[c] + sum over channels k and taps (i, j) of source[k, y_i, x_j] * weights[k, i, j, c]
// Distances are in units, those of the target in elements. A bfloat16 unit holds a number of each of two channels k, or
// of two neighboring taps j.
struct RowTask {
  const LaneUnit* source;
  std::int64_t channels;  // k, in units
  std::int64_t source_plane;
  std::int64_t source_row;
  std::int64_t source_pair;  // distance between the two vectors
  // [channels, kernel_height, kernel_width, weight_step], from the first c on.
  const LaneUnit* weights;
  std::int64_t kernel_height;
  std::int64_t kernel_width;  // in pairs if units hold two taps
  std::int64_t weight_step;
  const float* bias;  // null: zeros
  void* target;
  std::int64_t target_offset;  // offset of the row
  std::int64_t target_plane;
  std::int64_t target_pair;
  std::int64_t positions;  // p
  Taps y;
  const Taps* x;               // by position
  std::int64_t source_step_y;  // source pixels between two successive taps or pairs of taps
  std::int64_t source_step_x;
  std::int64_t tap_step_y;  // difference between the numbers of two successive taps
  std::int64_t tap_step_x;
  // Adds to the target's content instead of the bias; only if LaneKernels::cache_bytes is not 0.
  bool adds;
  bool relu;  // max(0, .) of the sum; NaN stays NaN
};

// The gradient of the weights between a few channels c of the input and a few filters f, and of the filters' biases:
//   weights_gradient[c, i, j, f] = sum over examples and positions of
//                                  gradient[f, y, x] * input[c, y * stride_y + i, x * stride_x + j]
// Distances are in units. A bfloat16 unit holds a number of each of two examples.
struct CorrelationTask {
  std::int64_t blocks;    // blocks of kLanes examples
  const LaneUnit* input;  // from the first c on
  std::int64_t channels;  // c
  std::int64_t input_block;
  std::int64_t input_plane;
  std::int64_t input_row;
  const LaneUnit* gradient;  // gradient of the output
  std::int64_t gradient_block;
  std::int64_t gradient_plane;
  std::int64_t height;  // height and width of the output
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
  std::int64_t elements;      // elements of a unit: 1 float32 or 2 bfloat16
  std::int64_t vector;        // units of a vector of `row`: kLanes, or a part of them
  std::int64_t cache_bytes;   // bytes of its factors that a row should read repeatedly; 0: any number
  std::int64_t max_channels;  // largest number of c at a time
  void (*row)(std::int64_t channels, std::int64_t vectors, const RowTask& task);
  std::int64_t max_filters;            // largest number of f at a time
  std::int64_t max_filters_if_narrow;  // for kernels of up to kNarrow columns
  void (*correlate)(std::int64_t filters, const CorrelationTask& task);
};

extern const LaneKernels kAvx2LaneKernels;
extern const LaneKernels kAvx512LaneKernels;      // only on a processor with AVX-512
extern const LaneKernels kAvx512Bf16LaneKernels;  // only on a processor with avx512_bf16

// The float32 kernels with the widest vectors of this processor.
const LaneKernels& lane_kernels();
// Null if the processor does not multiply bfloat16.
const LaneKernels* bfloat16_lane_kernels();

// Packs `count` numbers of `first` and of `second` into units; null: zeros.
void pack(std::int64_t count, const BFloat16* first, const BFloat16* second, LaneUnit* to);
// Packs [groups, planes, plane] into units of neighboring planes, [groups, (planes + 1) / 2, plane]. A last plane
// without a neighbor is paired with zeros.
void pack_planes(int threads, std::int64_t groups, std::int64_t planes, std::int64_t plane, const BFloat16* from,
                 LaneUnit* to);
// Packs planes of pixels [planes, plane] into units of neighboring pixels: each pixel with the next one, the last of a
// plane with zero. If a kernel row has an odd number of taps, a zero weight multiplies the pixel after the last tap. If
// that pixel is not finite, the sum is not finite either.
void pack_neighbors(int threads, std::int64_t planes, std::int64_t plane, const BFloat16* from, LaneUnit* to);

}  // namespace arbalest::engine::cpu
