// cuDNN's handles and descriptors.
#include <cudnn.h>

#include <array>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/cudnn_handles.h"
#include "tests/cuda_stand_in/memory.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr std::size_t kHandleBytes = std::size_t{2} << 20U;  // of the device's memory

template <typename Body>
cudnnStatus_t cudnn_call(const char* function, InCapture in_capture, const Body& body) {
  return library_call(function, in_capture, CUDNN_STATUS_EXECUTION_FAILED_CUDART, body);
}

// Descriptors are host memory, so they need no device and are allowed in a capture.
template <typename Body>
cudnnStatus_t describe(const char* function, const Body& body) {
  const Lock lock;
  const int injected = take_injected(function);
  return injected != 0 ? static_cast<cudnnStatus_t>(injected) : body();
}

template <typename T>
cudnnStatus_t create(T** descriptor, const char* kind, const char* function) {
  return describe(function, [&] {
    *descriptor = make_handle<T>(kind);
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t destroy(const void* descriptor, const char* kind, const char* function) {
  return describe(
      function, [&] { return end_handle(descriptor, kind, function) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM; });
}

cudnnStatus_t set(Extents& extents, cudnnTensorFormat_t format, cudnnDataType_t type, const Extents& value) {
  const bool known_type = type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16;
  if (!known_type || format == CUDNN_TENSOR_NCHW_VECT_C) return CUDNN_STATUS_NOT_SUPPORTED;
  if (value.n <= 0 || value.c <= 0 || value.h <= 0 || value.w <= 0) return CUDNN_STATUS_BAD_PARAM;
  extents = value;
  extents.channels_last = format == CUDNN_TENSOR_NHWC;
  extents.number = type == CUDNN_DATA_BFLOAT16 ? Number::kBFloat16 : Number::kFloat32;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_ALLOC_FAILED: return "CUDNN_STATUS_ALLOC_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED_CUDART: return "CUDNN_STATUS_EXECUTION_FAILED_CUDART";
    default: return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return cudnn_call("cudnnCreate", InCapture::kIllegal, [&] {
    if (!take_elsewhere(this_thread().device, kHandleBytes)) {
      // The status depends on which part of cuDNN ran out of memory.
      constexpr std::array kStatuses{CUDNN_STATUS_ALLOC_FAILED, CUDNN_STATUS_NOT_INITIALIZED,
                                     CUDNN_STATUS_INTERNAL_ERROR};
      return kStatuses[random_below(kStatuses.size())];
    }
    *handle = make_handle<cudnnContext>("cuDNN handle");
    (*handle)->device = this_thread().device;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return cudnn_call("cudnnDestroy", InCapture::kIllegal, [&] {
    if (!end_handle(handle, "cuDNN handle", "cudnnDestroy")) return CUDNN_STATUS_BAD_PARAM;
    give_back_elsewhere(handle->device, kHandleBytes);
    return spoils_captures_of_others("cudnnDestroy") ? CUDNN_STATUS_EXECUTION_FAILED_CUDART : CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return cudnn_call("cudnnSetStream", InCapture::kLegal, [&] {
    const CUstream_st* found = find_stream(stream, "cudnnSetStream");
    if (found == nullptr || !is_alive(handle, "cuDNN handle", "cudnnSetStream")) return CUDNN_STATUS_BAD_PARAM;
    if (found->device != handle->device) {
      violation("cudnnSetStream: the stream and the handle are of two devices");
      return CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH;
    }
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  return create(descriptor, "tensor descriptor", "cudnnCreateTensorDescriptor");
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  return destroy(descriptor, "tensor descriptor", "cudnnDestroyTensorDescriptor");
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  return describe("cudnnSetTensor4dDescriptor", [&] {
    if (!is_alive(descriptor, "tensor descriptor", "cudnnSetTensor4dDescriptor")) return CUDNN_STATUS_BAD_PARAM;
    return set(descriptor->extents, format, type, {n, c, h, w});
  });
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor) {
  return create(descriptor, "filter descriptor", "cudnnCreateFilterDescriptor");
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor) {
  return destroy(descriptor, "filter descriptor", "cudnnDestroyFilterDescriptor");
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
  return describe("cudnnSetFilter4dDescriptor", [&] {
    if (!is_alive(descriptor, "filter descriptor", "cudnnSetFilter4dDescriptor")) return CUDNN_STATUS_BAD_PARAM;
    return set(descriptor->extents, format, type, {k, c, h, w});
  });
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* descriptor) {
  return create(descriptor, "convolution descriptor", "cudnnCreateConvolutionDescriptor");
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t descriptor) {
  return destroy(descriptor, "convolution descriptor", "cudnnDestroyConvolutionDescriptor");
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t descriptor, int padding_height,
                                              int padding_width, int stride_height, int stride_width,
                                              int dilation_height, int dilation_width, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type) {
  return describe("cudnnSetConvolution2dDescriptor", [&] {
    if (!is_alive(descriptor, "convolution descriptor", "cudnnSetConvolution2dDescriptor")) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED;
    if (dilation_height < 1 || dilation_width < 1) return CUDNN_STATUS_BAD_PARAM;
    descriptor->geometry = {
        {}, {}, {}, padding_height, padding_width, stride_height, stride_width, dilation_height, dilation_width};
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t descriptor, int groups) {
  return describe("cudnnSetConvolutionGroupCount", [&] {
    if (!is_alive(descriptor, "convolution descriptor", "cudnnSetConvolutionGroupCount") || groups < 1) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    descriptor->geometry.groups = groups;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t descriptor, cudnnMathType_t math) {
  return describe("cudnnSetConvolutionMathType", [&] {
    if (!is_alive(descriptor, "convolution descriptor", "cudnnSetConvolutionMathType")) return CUDNN_STATUS_BAD_PARAM;
    descriptor->math = math;
    return CUDNN_STATUS_SUCCESS;
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
