#include "engine/cuda/descriptors.h"

#include <limits>

#include "engine/error.h"

namespace arbalest::engine::cuda {

int to_int(std::int64_t extent) {
  if (extent < 0 || extent > std::numeric_limits<int>::max()) {
    fail(ErrorKind::kDevice, "an extent of {} is beyond what cuDNN and cuBLAS can count; use a smaller batch", extent);
  }
  return static_cast<int>(extent);
}

TensorDescriptor describe_images(const Shape& shape) {
  ARBALEST_CHECK(shape.rank() == 4);
  TensorDescriptor descriptor;
  ARBALEST_CUDA(cudnnCreateTensorDescriptor(descriptor.put()));
  ARBALEST_CUDA(cudnnSetTensor4dDescriptor(descriptor.get(), CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, to_int(shape[0]),
                                           to_int(shape[1]), to_int(shape[2]), to_int(shape[3])));
  return descriptor;
}

FilterDescriptor describe_filters(const Shape& shape) {
  ARBALEST_CHECK(shape.rank() == 4);
  FilterDescriptor descriptor;
  ARBALEST_CUDA(cudnnCreateFilterDescriptor(descriptor.put()));
  ARBALEST_CUDA(cudnnSetFilter4dDescriptor(descriptor.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, to_int(shape[0]),
                                           to_int(shape[1]), to_int(shape[2]), to_int(shape[3])));
  return descriptor;
}

ConvolutionDescriptor describe_convolution(const Window& window) {
  constexpr int kDilation = 1;
  ConvolutionDescriptor descriptor;
  ARBALEST_CUDA(cudnnCreateConvolutionDescriptor(descriptor.put()));
  ARBALEST_CUDA(cudnnSetConvolution2dDescriptor(
      descriptor.get(), to_int(window.padding.height), to_int(window.padding.width), to_int(window.stride.height),
      to_int(window.stride.width), kDilation, kDilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  ARBALEST_CUDA(cudnnSetConvolutionMathType(descriptor.get(), CUDNN_FMA_MATH));
  return descriptor;
}

}  // namespace arbalest::engine::cuda
