// 3 x 3 convolution in float32 of images with 16 channels side by side, by Winograd's minimal filtering
// (engine/cpu/winograd/blocked_kernels.h), for weights that are transformed beforehand. The bits are the same for every
// number of threads.
#pragma once

#include <cstdint>

#include "engine/ops/conv2d.h"

namespace arbalest::engine::cpu {

class BlockedWinograd {
 public:
  // Whether the processor and the convolution fit: stride 1, one pixel of padding, no groups, whole blocks of channels.
  // `shape`: of the input.
  static bool fits(const Shape& shape, std::int64_t filters, const Window& window, std::int64_t groups);

  // `shape`: [n, c, h, w], of the input. `threads`: most threads of run().
  BlockedWinograd(const Shape& shape, std::int64_t filters, int threads);

  // Floats of transformed weights, and of scratch memory of run().
  std::int64_t weights() const { return 36 * channels_ * filters_; }
  std::int64_t scratch() const;

  // from: [filters, c, 3, 3]
  void transform(const float* from, float* weights) const;

  struct Operands {
    const float* input;
    const float* weights;  // transformed
    const float* bias;     // [filters] or null
    const float* addend;   // as the output, or null
    bool relu;
    float* scratch;  // scratch(), aligned to a cache line
    float* output;
  };
  void run(int threads, const Operands& operands) const;

 private:
  std::int64_t tiles_;  // of all examples
  std::int64_t channels_, filters_, height_, width_;
  int threads_;
  std::int64_t tiles_at_once_;
};

}  // namespace arbalest::engine::cpu
