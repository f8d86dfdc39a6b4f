// Images with interleaved examples: [n / 16, c, h, w, 16]. oneDNN's blocked convolutions pad channels to a multiple of
// 16, which wastes half of their work on LeNet's 20 and 50 channels. Here examples fill the vectors and no channel is
// padded (in bfloat16, an odd channel is paired with zeros). Taps also skip the images' zero padding, which is a large
// part of small images. This file alone decides whether a convolution uses this layout. Maximum pooling, batch norm and
// elementwise operators keep the layout; every other operator copies from it.
#pragma once

#include <memory>

#include <dnnl.hpp>

#include "engine/operator.h"

namespace arbalest::engine::cpu {

// n must be a multiple of 16, so that nothing is padded.
dnnl::memory::desc lane_descriptor(const Shape& images, DType dtype);
bool lies_in_lanes(const dnnl::memory::desc& tensor);
bool lies_in_lanes(const Layout& tensor);

// Whether the kernels for this layout are faster than oneDNN's.
bool prefers_lanes(const Conv2dSpec& spec, const PrepareOptions& options);
std::unique_ptr<Operator> make_lane_conv2d(const Conv2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine);

// Whether there is a kernel that keeps the input's layout.
bool keeps_lanes(const Pool2dSpec& spec);
std::unique_ptr<Operator> make_lane_pool2d(const Pool2dSpec& spec, const PrepareOptions& options,
                                           const dnnl::engine& engine);

}  // namespace arbalest::engine::cpu
