// 3 x 3 convolution of bfloat16 whose examples lie side by side, by Winograd's minimal filtering
// (engine/cpu/winograd_kernels.h): steps 1, a pixel of padding on all sides, an even number of rows and of columns. The
// same bits for every number of threads.
#pragma once

#include <cstdint>

#include "engine/cpu/lane_kernels.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cpu {

// input [n, c, h, w], n a multiple of kLanes. filters: 2 or more.
bool has_winograd(const Shape& input, std::int64_t filters, const Window& window);

// Forward; or the gradient of the input, which convolves the output's gradient: [n, filters, h, w], "filters" being the
// channels of the input then.
class WinogradConvolution {
 public:
  WinogradConvolution(const Shape& input, std::int64_t filters);

  // weights [c, 3, 3, filters] for `run`. reversed: in both directions, as the gradient of the input takes them.
  std::int64_t weight_units() const;
  void prepare(const BFloat16* weights, bool reversed, LaneUnit* prepared) const;

  // bias [filters] or null; scratch: scratch_units(), aligned to a cache line.
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

  // weights_gradient [c, 3, 3, filters]; bias_gradient [filters] or null; scratch: scratch_units(), aligned to a cache
  // line.
  std::int64_t scratch_units() const;
  void run(int threads, const BFloat16* input, const BFloat16* output_gradient, LaneUnit* scratch,
           float* weights_gradient, float* bias_gradient) const;

 private:
  // Where the components of all planes lie in scratch, in units.
  struct Components {
    std::int64_t plane;
    std::int64_t component;
  };
  Components components(std::int64_t planes, std::int64_t rows) const;
  // Of so many blocks of a component; what is read and written is not set.
  CorrelationTask correlation(std::int64_t blocks) const;
  // Of so many blocks.
  void add(int threads, std::int64_t blocks, const BFloat16* input, const BFloat16* output_gradient, LaneUnit* scratch,
           float* weights_gradient, float* bias_gradient) const;

  std::int64_t blocks_, channels_, height_, width_, filters_;
  std::int64_t blocks_at_once_;
  Components of_input_, of_gradient_;
};

}  // namespace arbalest::engine::cpu
