// 3 x 3 convolution in bfloat16 of interleaved examples, by Winograd's minimal filtering
// (engine/cpu/winograd/kernels.h). It needs stride 1, one pixel of padding on all sides, and even numbers of rows and
// columns. The bits are the same for every number of threads.
#pragma once

#include <cstdint>

#include "engine/cpu/lanes/kernels.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cpu {

// input: [n, c, h, w], n a multiple of kLanes. filters: 2 or more.
bool has_winograd(const Shape& input, std::int64_t filters, const Window& window);

// The forward convolution; or the gradient of the input, which convolves the output's gradient [n, filters, h, w]. Its
// "filters" are then the channels of the input.
class WinogradConvolution {
 public:
  WinogradConvolution(const Shape& input, std::int64_t filters);

  // Prepares weights [c, 3, 3, filters] for run(). reversed: in both directions, for the gradient of the input.
  std::int64_t weight_units() const;
  void prepare(const BFloat16* weights, bool reversed, LaneUnit* prepared) const;

  // bias: [filters] or null. scratch: scratch_units(), aligned to a cache line.
  std::int64_t scratch_units() const;
  void run(int threads, const BFloat16* input, const LaneUnit* weights, const float* bias, bool relu, LaneUnit* scratch,
           BFloat16* output) const;

 private:
  std::int64_t pairs() const { return (channels_ + 1) / 2; }

  std::int64_t blocks_, channels_, height_, width_, filters_;
};

class WinogradWeightsGradient {
 public:
  WinogradWeightsGradient(const Shape& input, std::int64_t filters);

  // weights_gradient: [c, 3, 3, filters]; bias_gradient: [filters] or null; scratch: scratch_units(), aligned to a
  // cache line.
  std::int64_t scratch_units() const;
  void run(int threads, const BFloat16* input, const BFloat16* output_gradient, LaneUnit* scratch,
           float* weights_gradient, float* bias_gradient) const;

 private:
  // Distances in scratch of the components of all planes, in units.
  struct Components {
    std::int64_t plane;
    std::int64_t component;
  };
  Components components(std::int64_t planes, std::int64_t rows) const;
  // A task for `blocks` blocks of a component; the caller sets what is read and written.
  CorrelationTask correlation(std::int64_t blocks) const;
  // Adds the gradient of `blocks` blocks.
  void add(int threads, std::int64_t blocks, const BFloat16* input, const BFloat16* output_gradient, LaneUnit* scratch,
           float* weights_gradient, float* bias_gradient) const;

  std::int64_t blocks_, channels_, height_, width_, filters_;
  std::int64_t blocks_at_once_;
  Components of_input_, of_gradient_;
};

}  // namespace arbalest::engine::cpu
