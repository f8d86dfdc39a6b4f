// cuDNN's descriptors of tensors. These functions throw ErrorKind::kDevice if an extent is too large for cuDNN.
#pragma once

#include <cstdint>

#include "engine/base/dtype.h"
#include "engine/base/shape.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handle.h"
#include "engine/ops/window.h"

namespace arbalest::engine::cuda {

using TensorDescriptor = Handle<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor>;
using FilterDescriptor = Handle<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor = Handle<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

// Converts `extent` to the type that cuDNN and cuBLAS take.
int to_int(std::int64_t extent);

// Images of shape [n, c, h, w] in `order`; float32 or bfloat16.
TensorDescriptor describe_images(const Shape& shape, DType dtype, Order order);
// Convolution weights of shape [o, c, kernel h, kernel w] in `order`; float32 or bfloat16.
FilterDescriptor describe_filters(const Shape& shape, DType dtype, Order order);
// Cross-correlation that adds in float32, with the same padding on both sides. The caller sets the math type.
ConvolutionDescriptor describe_convolution(const Window& window, std::int64_t groups);

}  // namespace arbalest::engine::cuda
