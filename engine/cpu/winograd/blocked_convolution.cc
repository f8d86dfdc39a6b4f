#include "engine/cpu/winograd/blocked_convolution.h"

#include <algorithm>
#include <cmath>

#include "engine/cpu/device/parallel.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

// G of blocked_kernels.h: powers of the points, over the product of each point's distances from the others. The sixth
// point is infinity.
double kernel_factor(std::int64_t component, std::int64_t place, std::int64_t kernel) {
  constexpr double kDistances[] = {4.0, -6.0, -6.0, 24.0, 24.0};
  if (component == kTilePixels - 1) return place == kernel - 1 ? 1.0 : 0.0;
  return std::pow(static_cast<double>(kTilePoints[component]), static_cast<double>(place)) / kDistances[component];
}

// Component (i, k) of G g G', for g [kernel, kernel].
float kernel_component(const float* g, std::int64_t kernel, std::int64_t i, std::int64_t k) {
  double sum = 0.0;
  for (std::int64_t y = 0; y < kernel; ++y) {
    for (std::int64_t x = 0; x < kernel; ++x) {
      sum += kernel_factor(i, y, kernel) * static_cast<double>(g[kernel * y + x]) * kernel_factor(k, x, kernel);
    }
  }
  return static_cast<float>(sum);
}

BlockedImages16 images_of(const Shape& shape) { return {shape[1], shape[2], shape[3]}; }

}  // namespace

bool BlockedWinograd::fits(const Conv2dSpec& spec) {
  const Window& window = spec.window;
  const Extent2d three{3, 3}, five{5, 5}, one{1, 1};
  return __builtin_cpu_supports("avx512f") && (window.kernel == three || window.kernel == five) &&
         window.stride == one && window.dilation == one && window.padding.height == window.padding.width &&
         spec.groups == 1;
}

BlockedWinograd::BlockedWinograd(const Conv2dSpec& spec, int threads)
    : task_{.input = images_of(spec.input.shape()),
            .output = images_of(window_output_shape(spec.input.shape(), spec.window, spec.filters)),
            .padding = spec.window.padding.height,
            .side = kTilePixels + 1 - spec.window.kernel.height},
      tiles_(spec.input.shape()[0] * task_.tiles_of_image()),
      threads_(threads) {
  constexpr std::int64_t kMostTiles = 16;
  tiles_at_once_ = std::clamp((tiles_ + threads - 1) / threads, std::int64_t{1}, kMostTiles);
}

std::int64_t BlockedWinograd::scratch() const {
  return threads_ * tile_scratch(task_.input.channels, task_.output.channels, tiles_at_once_);
}

void BlockedWinograd::prepare(const float* weights, const float* bias, float* prepared) const {
  const std::int64_t channels = task_.input.channels;
  const std::int64_t blocks = tile_blocks(task_.output.channels);
  const std::int64_t kernel = kTilePixels + 1 - task_.side;
  std::fill_n(prepared, this->prepared(), 0.0F);
  for (std::int64_t filter = 0; filter < task_.output.channels; ++filter) {
    std::int64_t first = 0;  // block of the filter's group
    while (first + blocks_of_group(first, blocks) <= filter / kTileBlock) first += blocks_of_group(first, blocks);
    const std::int64_t width = blocks_of_group(first, blocks) * kTileBlock;
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* g = weights + (filter * channels + c) * kernel * kernel;
      for (std::int64_t k = 0; k < kTileTerms; ++k) {
        float* const group = prepared + (k * blocks + first) * channels * kTileBlock;
        group[c * width + filter - first * kTileBlock] = kernel_component(g, kernel, k / kTilePixels, k % kTilePixels);
      }
    }
  }
  if (bias != nullptr) std::copy_n(bias, task_.output.channels, prepared + kTileTerms * channels * filters());
}

void BlockedWinograd::run(int threads, const Operands& operands) const {
  ARBALEST_CHECK(threads <= threads_);
  const BlockedWinogradOperands tensors{.input = operands.input,
                                        .weights = operands.prepared,
                                        .bias = operands.prepared + kTileTerms * task_.input.channels * filters(),
                                        .addend = operands.addend,
                                        .relu = operands.relu,
                                        .output = operands.output};
  const std::int64_t scratch = tile_scratch(task_.input.channels, task_.output.channels, tiles_at_once_);
  const std::int64_t groups = (tiles_ + tiles_at_once_ - 1) / tiles_at_once_;
  for_each_part(threads, threads, [&](std::int64_t part) {
    for (std::int64_t group = groups * part / threads; group < groups * (part + 1) / threads; ++group) {
      const std::int64_t first = group * tiles_at_once_;
      convolve_tiles(task_, tensors, first, std::min(tiles_at_once_, tiles_ - first),
                     operands.scratch + part * scratch);
    }
  });
}

}  // namespace arbalest::engine::cpu
