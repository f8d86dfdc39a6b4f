#include "engine/cpu/winograd/blocked_convolution.h"

#include <algorithm>

#include "engine/cpu/device/parallel.h"
#include "engine/cpu/winograd/blocked_kernels.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

// G of blocked_kernels.h
constexpr double kKernelTransform[kTilePixels][3] = {{1.0 / 4, 0, 0},
                                                     {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                                     {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                                     {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                                     {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                                     {0, 0, 1}};

// Component (i, k) of G g G'.
float component(const float* kernel, std::int64_t i, std::int64_t k) {
  double sum = 0.0;
  for (std::int64_t y = 0; y < 3; ++y) {
    for (std::int64_t x = 0; x < 3; ++x) sum += kKernelTransform[i][y] * kernel[3 * y + x] * kKernelTransform[k][x];
  }
  return static_cast<float>(sum);
}

}  // namespace

bool BlockedWinograd::fits(const Shape& shape, std::int64_t filters, const Window& window, std::int64_t groups) {
  const Window same{{3, 3}, {1, 1}, {1, 1}};
  return __builtin_cpu_supports("avx512f") && window == same && groups == 1 && shape[1] % kTileBlock == 0 &&
         filters % kTileBlock == 0;
}

BlockedWinograd::BlockedWinograd(const Shape& shape, std::int64_t filters, int threads)
    : channels_(shape[1]), filters_(filters), height_(shape[2]), width_(shape[3]), threads_(threads) {
  constexpr std::int64_t kMostTiles = 16;
  const BlockedWinogradTask task{.input = nullptr,
                                 .weights = nullptr,
                                 .bias = nullptr,
                                 .addend = nullptr,
                                 .relu = false,
                                 .output = nullptr,
                                 .channels = channels_,
                                 .filters = filters_,
                                 .height = height_,
                                 .width = width_};
  tiles_ = shape[0] * task.tiles_of_image();
  tiles_at_once_ = std::clamp((tiles_ + threads - 1) / threads, std::int64_t{1}, kMostTiles);
}

std::int64_t BlockedWinograd::scratch() const { return threads_ * tile_scratch(channels_, filters_, tiles_at_once_); }

void BlockedWinograd::transform(const float* from, float* weights) const {
  const std::int64_t blocks = filters_ / kTileBlock;
  for (std::int64_t first = 0; first < blocks; first += blocks_of_group(first, blocks)) {
    const std::int64_t width = blocks_of_group(first, blocks) * kTileBlock;
    for (std::int64_t c = 0; c < channels_; ++c) {
      for (std::int64_t f = 0; f < width; ++f) {
        const float* kernel = from + ((first * kTileBlock + f) * channels_ + c) * 9;
        for (std::int64_t k = 0; k < kTileTerms; ++k) {
          float* const group = weights + (k * blocks + first) * channels_ * kTileBlock;
          group[c * width + f] = component(kernel, k / kTilePixels, k % kTilePixels);
        }
      }
    }
  }
}

void BlockedWinograd::run(int threads, const Operands& operands) const {
  ARBALEST_CHECK(threads <= threads_);
  const BlockedWinogradTask task{.input = operands.input,
                                 .weights = operands.weights,
                                 .bias = operands.bias,
                                 .addend = operands.addend,
                                 .relu = operands.relu,
                                 .output = operands.output,
                                 .channels = channels_,
                                 .filters = filters_,
                                 .height = height_,
                                 .width = width_};
  const std::int64_t scratch = tile_scratch(channels_, filters_, tiles_at_once_);
  const std::int64_t groups = (tiles_ + tiles_at_once_ - 1) / tiles_at_once_;
  for_each_part(threads, threads, [&](std::int64_t part) {
    for (std::int64_t group = groups * part / threads; group < groups * (part + 1) / threads; ++group) {
      const std::int64_t first = group * tiles_at_once_;
      convolve_tiles(task, first, std::min(tiles_at_once_, tiles_ - first), operands.scratch + part * scratch);
    }
  });
}

}  // namespace arbalest::engine::cpu
