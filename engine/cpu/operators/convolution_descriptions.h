// Descriptions of oneDNN's convolutions, for training and for prediction.
#pragma once

#include <optional>

#include <dnnl.hpp>

#include "engine/cpu/onednn/primitives.h"

namespace arbalest::engine::cpu {

// A window in oneDNN's terms: its dilation counts the pixels between taps.
struct Slides {
  explicit Slides(const Window& window)
      : stride(pair(window.stride)),
        dilation{window.dilation.height - 1, window.dilation.width - 1},
        before(pair(window.padding)),
        after(pair(padding_after(window))) {}

  const dnnl::memory::dims stride, dilation, before, after;
};

dnnl::convolution_forward::desc forward_desc(dnnl::algorithm algorithm, OperatorMode mode, const LinearTensors& of,
                                             const Slides& by);
dnnl::convolution_backward_data::desc input_gradient_desc(dnnl::algorithm algorithm, const LinearTensors& of,
                                                          const Slides& by);

// Whether oneDNN computes the convolution itself, without its bias, faster as an input gradient.
bool is_faster_reversed(const LinearTensors& of, const Window& window);
// The kernel for LinearKernels::reversed; none if there is no fast kernel for the layouts of `forward`.
std::optional<dnnl::primitive_desc_base> reversed(const dnnl::engine& engine,
                                                  const dnnl::convolution_forward::primitive_desc& forward,
                                                  const LinearTensors& of, const Slides& by);

}  // namespace arbalest::engine::cpu
