// The loops of Winograd's minimal filtering F(2, 3) for 3 x 3 convolutions of bfloat16 with interleaved examples
// (engine/cpu/lanes/lanes.h). Two neighboring results of a row form a tile, which takes 4 products per channel instead
// of 6:
//   y = A' (G g * B' d), for 3 weights g and 4 pixels d    (Winograd, Arithmetic Complexity of Computations, 1980;
//   g' = G' (A y * B' d), for 2 gradients y                 Lavin and Gray, Fast Algorithms for CNNs, 2016)
//   B' d = (d0 - d2, d1 + d2, d2 - d1, d1 - d3)
//   G g = (g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2, g2)
//   A' m = (m0 + m1 + m2, m1 - m2 - m3)
// The products of the three kernel rows are summed. Factors are rounded to bfloat16 once more, which costs as much
// accuracy as rounding the weights and the output (bench/results, "Winograd in bfloat16").
//
// Only on a processor with avx512_bf16.
#pragma once

#include <cstdint>

#include "engine/cpu/lanes/kernels.h"

namespace arbalest::engine::cpu {

inline constexpr std::int64_t kTile = 2;        // results per tile
inline constexpr std::int64_t kComponents = 4;  // components of a transformed tile
inline constexpr std::int64_t kRows = 3;        // rows of the kernel

// B' d for two channels, padded by a pixel at both sides: planes [height, width, kLanes] to units [height, width /
// kTile, kComponents, kLanes]. second null: zeros.
void transform_channels(std::int64_t height, std::int64_t width, const BFloat16* first, const BFloat16* second,
                        LaneUnit* to);

// G g: weights [channels, 3, 3, filters] to units [(channels + 1) / 2, kRows, kComponents, 3 or 2 filters], one such
// group of filters after the other. reversed: uses weights [.., 2 - i, 2 - j, ..] for (i, j). filters: 2 or more.
void transform_weights(std::int64_t channels, std::int64_t filters, bool reversed, const BFloat16* weights,
                       LaneUnit* to);

// Computes two rows of the output for all filters.
struct WinogradRows {
  // This is the result of transform_channels, for all pairs of channels.
  const LaneUnit* images;
  std::int64_t pairs;
  std::int64_t height;
  std::int64_t width;
  const LaneUnit* weights;  // from transform_weights
  std::int64_t filters;     // 2 or more
  const float* bias;        // null: zeros
  bool relu;                // max(0, .) of the sum; NaN stays NaN
  std::int64_t row;         // first row; even
  BFloat16* output;         // [filters, height, width, kLanes]
};
void convolve_rows(const WinogradRows& rows);

// In both functions the k-th component of a plane is at to + k * component, [width / kTile, rows, kLanes].
// B' d with its last component negated, padded by a pixel on all sides: rows is height + 2.
void transform_input(std::int64_t height, std::int64_t width, const BFloat16* plane, std::int64_t component,
                     BFloat16* to);
// A y with its last component negated: rows is height.
void transform_gradient(std::int64_t height, std::int64_t width, const BFloat16* plane, std::int64_t component,
                        BFloat16* to);

}  // namespace arbalest::engine::cpu
