// Convolution in float32 of images with 16 channels side by side, by Winograd's minimal filtering
// (engine/cpu/winograd/blocked_kernels.h), for weights that are transformed beforehand
// (engine/cpu/winograd/weights_layout.h). The bits are the same for every number of threads.
#pragma once

#include <cstdint>

#include <dnnl.hpp>

#include "engine/cpu/winograd/blocked_kernels.h"
#include "engine/ops/conv2d.h"

namespace arbalest::engine::cpu {

class BlockedWinograd {
 public:
  // Whether the processor and the convolution fit: a 3 x 3 or 5 x 5 kernel, stride 1, no dilation and no groups.
  static bool fits(const Conv2dSpec& spec);

  // `input`, `output`: layouts of the images. `threads`: most threads of run().
  BlockedWinograd(const Conv2dSpec& spec, const dnnl::memory::desc& input, const dnnl::memory::desc& output,
                  int threads);
  // Whether images with this layout can be read and written.
  static bool takes(const dnnl::memory::desc& images);

  // Floats of scratch memory of run().
  std::int64_t scratch() const;

  // Blocks of channels are padded with zeros. All addresses but the bias are aligned to a cache line.
  struct Operands {
    const float* input;
    const float* weights;
    const float* bias;  // [filters], or null
    bool relu;          // after the sum; NaN stays NaN
    float* scratch;
    float* output;
  };
  void run(int threads, const Operands& operands) const;

 private:
  std::int64_t scratch_of_thread() const;
  std::int64_t filters() const { return tile_blocks(task_.output.channels) * kTileBlock; }

  BlockedWinogradTask task_;
  std::int64_t tiles_;  // of all examples
  std::int64_t tiles_at_once_;
  int threads_;
};

}  // namespace arbalest::engine::cpu
