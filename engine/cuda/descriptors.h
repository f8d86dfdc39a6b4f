// cuDNN's descriptions of tensors whose channels come last. Their makers throw ErrorKind::kDevice where an extent is
// beyond what cuDNN can count.
#pragma once

#include <cstdint>

#include "engine/cuda/check.h"
#include "engine/cuda/handle.h"
#include "engine/ops/window.h"
#include "engine/shape.h"

namespace arbalest::engine::cuda {

using TensorDescriptor = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

// `extent` as cuDNN and cuBLAS take it.
int to_int(std::int64_t extent);

// float32 images of shape [n, c, h, w], lying as [n, h, w, c].
TensorDescriptor describe_images(const Shape& shape);
// float32 convolution weights of shape [o, c, kernel h, kernel w], lying as [o, kernel h, kernel w, c].
FilterDescriptor describe_filters(const Shape& shape);
// Cross-correlation in float32 without TF32.
ConvolutionDescriptor describe_convolution(const Window& window);

}  // namespace arbalest::engine::cuda
