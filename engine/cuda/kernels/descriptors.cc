#include "engine/cuda/kernels/descriptors.h"

#include <limits>

#include "engine/base/error.h"

namespace arbalest::engine::cuda {

namespace {

cudnnDataType_t data_type(DType dtype) {
  ARBALEST_CHECK(dtype != DType::kInt32);
  return dtype == DType::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

cudnnTensorFormat_t format_of(Order order) {
  return order == Order::kChannelsLast ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
}

}  // namespace

int to_int(std::int64_t extent) {
  if (extent < 0 || extent > std::numeric_limits<int>::max()) {
    fail(ErrorKind::kDevice, "an extent of {} is too large for cuDNN and cuBLAS; use a smaller batch", extent);
  }
  return static_cast<int>(extent);
}

TensorDescriptor describe_images(const Shape& shape, DType dtype, Order order) {
  ARBALEST_CHECK(shape.rank() == 4);
  TensorDescriptor descriptor;
  ARBALEST_CUDA(cudnnCreateTensorDescriptor(descriptor.put()));
  ARBALEST_CUDA(cudnnSetTensor4dDescriptor(descriptor.get(), format_of(order), data_type(dtype), to_int(shape[0]),
                                           to_int(shape[1]), to_int(shape[2]), to_int(shape[3])));
  return descriptor;
}

FilterDescriptor describe_filters(const Shape& shape, DType dtype, Order order) {
  ARBALEST_CHECK(shape.rank() == 4);
  FilterDescriptor descriptor;
  ARBALEST_CUDA(cudnnCreateFilterDescriptor(descriptor.put()));
  ARBALEST_CUDA(cudnnSetFilter4dDescriptor(descriptor.get(), data_type(dtype), format_of(order), to_int(shape[0]),
                                           to_int(shape[1]), to_int(shape[2]), to_int(shape[3])));
  return descriptor;
}

ConvolutionDescriptor describe_convolution(const Window& window, std::int64_t groups) {
  ConvolutionDescriptor descriptor;
  ARBALEST_CUDA(cudnnCreateConvolutionDescriptor(descriptor.put()));
  ARBALEST_CUDA(cudnnSetConvolution2dDescriptor(
      descriptor.get(), to_int(window.padding.height), to_int(window.padding.width), to_int(window.stride.height),
      to_int(window.stride.width), to_int(window.dilation.height), to_int(window.dilation.width),
      CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  ARBALEST_CUDA(cudnnSetConvolutionGroupCount(descriptor.get(), to_int(groups)));
  return descriptor;
}

}  // namespace arbalest::engine::cuda
