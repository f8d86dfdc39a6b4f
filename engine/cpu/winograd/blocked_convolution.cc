#include "engine/cpu/winograd/blocked_convolution.h"

#include <algorithm>

#include "engine/cpu/device/parallel.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

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

std::int64_t BlockedWinograd::scratch_of_thread() const {
  return tile_scratch(task_.input.channels, task_.output.channels, tiles_at_once_);
}

std::int64_t BlockedWinograd::scratch() const { return threads_ * scratch_of_thread() + filters(); }

void BlockedWinograd::run(int threads, const Operands& operands) const {
  ARBALEST_CHECK(threads <= threads_);
  float* const bias = operands.scratch;
  std::fill_n(bias, filters(), 0.0F);
  if (operands.bias != nullptr) std::copy_n(operands.bias, task_.output.channels, bias);
  float* const scratch = bias + filters();
  const BlockedWinogradOperands tensors{.input = operands.input,
                                        .weights = operands.weights,
                                        .bias = bias,
                                        .relu = operands.relu,
                                        .output = operands.output};
  const std::int64_t groups = (tiles_ + tiles_at_once_ - 1) / tiles_at_once_;
  for_each_part(threads, threads, [&](std::int64_t part) {
    for (std::int64_t group = groups * part / threads; group < groups * (part + 1) / threads; ++group) {
      const std::int64_t first = group * tiles_at_once_;
      const std::int64_t count = std::min(tiles_at_once_, tiles_ - first);
      convolve_tiles(task_, tensors, first, count, scratch + part * scratch_of_thread());
    }
  });
}

}  // namespace arbalest::engine::cpu
