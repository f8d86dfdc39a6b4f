#include "engine/cuda/runtime/check.h"

#include "engine/base/error.h"

namespace arbalest::engine::cuda {

std::string_view function_of(std::string_view call) { return call.substr(0, call.find('(')); }

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // clears the error, so that the next call does not see it
    fail(ErrorKind::kOutOfMemory, "{}: out of device memory", function_of(call));
  }
  fail(ErrorKind::kDevice, "{}: {} ({})", function_of(call), cudaGetErrorString(result), cudaGetErrorName(result));
}

void check(cudnnStatus_t result, const char* call) {
  if (result == CUDNN_STATUS_SUCCESS) return;
  const bool memory =
      result == CUDNN_STATUS_ALLOC_FAILED || result == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  fail(memory ? ErrorKind::kOutOfMemory : ErrorKind::kDevice, "{}: {}", function_of(call), cudnnGetErrorString(result));
}

void check(cublasStatus_t result, const char* call) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  fail(memory ? ErrorKind::kOutOfMemory : ErrorKind::kDevice, "{}: {}", function_of(call),
       cublasGetStatusString(result));
}

}  // namespace arbalest::engine::cuda
