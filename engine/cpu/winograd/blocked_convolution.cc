#include "engine/cpu/winograd/blocked_convolution.h"

#include <algorithm>

#include "engine/base/error.h"
#include "engine/cpu/onednn/instruction_sets.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

namespace {

// Steps are 0 if the layout does not fit.
BlockedImages16 images_of(const dnnl::memory::desc& images) {
  const dnnl::memory::dims extents = images.dims();
  const auto strides = image_strides(images);
  BlockedImages16 of{extents[1], extents[2], extents[3], 0, 0, 0, 0};
  if (!strides || images.data_type() != dnnl::memory::data_type::f32) return of;
  const bool is_blocked = strides->block == kTileBlock;
  const bool has_channels_last = strides->block == 1 && strides->channel_block == 1 && of.channels % kTileBlock == 0;
  if (!is_blocked && !has_channels_last) return of;
  of.example_step = strides->example;
  of.block_step = is_blocked ? strides->channel_block : kTileBlock;
  of.row_step = strides->row;
  of.pixel_step = strides->column;
  return of;
}

}  // namespace

bool BlockedWinograd::fits(const Conv2dSpec& spec) {
  const Window& window = spec.window;
  const Extent2d three{3, 3}, five{5, 5}, one{1, 1};
  return vector_instructions().avx512 && (window.kernel == three || window.kernel == five) && window.stride == one &&
         window.dilation == one && window.padding.height == window.padding.width && spec.groups == 1;
}

bool BlockedWinograd::takes(const dnnl::memory::desc& images) { return images_of(images).pixel_step > 0; }

BlockedWinograd::BlockedWinograd(const Conv2dSpec& spec, const dnnl::memory::desc& input,
                                 const dnnl::memory::desc& output, int threads)
    : task_{.input = images_of(input),
            .output = images_of(output),
            .padding = spec.window.padding.height,
            .side = kTilePixels + 1 - spec.window.kernel.height},
      tiles_(spec.input.shape()[0] * task_.tiles_of_image()),
      threads_(threads) {
  ARBALEST_CHECK(takes(input) && takes(output));
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
