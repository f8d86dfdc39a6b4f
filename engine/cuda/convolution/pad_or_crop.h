// Adds or removes rows and columns of zeros at one side of images, because cuDNN's convolutions support only symmetric
// padding.
#pragma once

#include "engine/base/shape.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/runtime/team_stream.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cuda {

// Enqueues one kernel: to[n, c, y, x] = from[n, c, y + first.height, x + first.width], or zero if `from` has no such
// pixel. Conversion to bfloat16 rounds to nearest. Both tensors have the same number of examples and channels and must
// not overlap. `first`: the pixel of `from` at the upper left corner of `to`; negative where zeros are added before.
void pad_or_crop(const void* from, const Arrangement& from_arrangement, const Shape& from_shape, void* to,
                 const Arrangement& to_arrangement, const Shape& to_shape, const Extent2d& first,
                 const TeamStream& stream);

}  // namespace arbalest::engine::cuda
