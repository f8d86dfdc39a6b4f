// Convolution of tensors with interleaved examples (engine/cpu/lanes/lanes.h). The bits are the same for every number
// of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/cpu/lanes/kernels.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cpu {

class LaneConvolution {
 public:
  // Tensors given as void* have the kernels' element type. input: [n, c, h, w], n a multiple of kLanes. The window must
  // fit and have no dilation. The kernels must outlive this object.
  LaneConvolution(const Shape& input, std::int64_t filters, const Window& window, const LaneKernels& kernels);

  // Kernels for bfloat16 multiply packed factors: weights are packed by pack_planes with these arguments,
  struct Planes {
    std::int64_t groups, planes;
  };
  Planes forward_planes() const;
  Planes input_gradient_planes() const { return {1, output_.channels}; }
  // and images to units [n / kLanes, (channels + 1) / 2, h, w, kLanes].
  void pack_input(int threads, const BFloat16* input, LaneUnit* packed) const;
  void pack_output_gradient(int threads, const BFloat16* gradient, LaneUnit* packed) const;

  // weights: [c, h, w, filters], in this order in memory; bias: [filters] or null.
  void forward(int threads, const LaneUnit* input, const LaneUnit* weights, const float* bias, bool relu,
               void* output) const;
  // weights: [filters, h, w, c].
  void input_gradient(int threads, const LaneUnit* output_gradient, const LaneUnit* weights, void* gradient) const;
  // Shape of the input with its padding of zeros: [n, c, padded h, padded w].
  Shape padded_shape() const { return {blocks_ * kLanes, padded_.channels, padded_.height, padded_.width}; }
  void pad(int threads, const LaneUnit* input, LaneUnit* padded) const;
  // Reads the padded input and the output's gradient unpacked. weights_gradient: [c, h, w, filters]; bias_gradient:
  // [filters] or null.
  void weights_gradient(int threads, const LaneUnit* padded, const LaneUnit* output_gradient, float* weights_gradient,
                        float* bias_gradient) const;

 private:
  struct Images {
    std::int64_t channels, height, width;
    std::int64_t row() const { return width * kLanes; }
    std::int64_t plane() const { return height * row(); }
    std::int64_t block() const { return channels * plane(); }
  };
  // Computes all rows of `target` by `task`, whose row-dependent fields need not be set.
  void run_rows(int threads, RowTask task, const Images& source, const Images& target,
                const std::vector<Taps>& y) const;
  // Number of channels for which the source rows that the kernel reads, and the weights of some filters, stay in the
  // cache.
  std::int64_t channels_at_once(std::int64_t channels, std::int64_t source_row) const;

  const LaneKernels& kernels_;
  std::int64_t blocks_;
  Images input_;
  Images padded_;  // input with padding
  Images output_;
  Window window_;
  bool pairs_taps_ = false;                    // forward pairs taps instead of channels, if there is one channel
  std::vector<Taps> forward_y_, forward_x_;    // by position of the output
  std::vector<Taps> backward_y_, backward_x_;  // by pixel of the input
};

}  // namespace arbalest::engine::cpu
