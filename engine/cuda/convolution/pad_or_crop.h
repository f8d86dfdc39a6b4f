// Images with rows and columns of zeros added below and to the right, or taken away there: cuDNN's convolutions know
// the same padding on both sides only.
#pragma once

#include <cuda_runtime.h>

#include "engine/cuda/layout/transpose.h"
#include "engine/shape.h"

namespace arbalest::engine::cuda {

// Enqueues one kernel: to[n, c, y, x] = from[n, c, y, x], rounded to the nearest where it becomes bfloat16, and zero
// where `from` has no such pixel. Both are images of as many examples and channels, and do not overlap.
void pad_or_crop(const void* from, const Arrangement& from_arrangement, const Shape& from_shape, void* to,
                 const Arrangement& to_arrangement, const Shape& to_shape, cudaStream_t stream);

}  // namespace arbalest::engine::cuda
