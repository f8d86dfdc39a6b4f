// Images whose examples lie side by side: [n / 16, c, h, w, 16]. oneDNN's blocked convolutions pad channels to a
// multiple of 16, which wastes half of their work on LeNet's 20 and 50; here examples fill the vectors and no channel
// is padded (of bfloat16, an odd one is paired with zeros). Nor do taps multiply the padding of images, which is a good
// part of small ones. Whether a convolution makes this layout is decided in this file alone. Maximum pooling, batch
// norm, and what works on elements keep it; every other operator copies from it.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// n is a multiple of 16, so that nothing is padded.
dnnl::memory::desc lane_descriptor(const Shape& images, DType dtype);
bool lies_in_lanes(const dnnl::memory::desc& tensor);
bool lies_in_lanes(const Layout& tensor);

// Whether the kernels for this layout beat oneDNN's.
bool prefers_lanes(const Conv2dSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_lane_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine);

// Whether there is a kernel that keeps the layout of the input.
bool keeps_lanes(const Pool2dSpec& spec);
std::unique_ptr<Operator> make_lane_pool2d(const Pool2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
