// Every result of CUDA's libraries passes through one of these. Out of memory is recoverable (ErrorKind::kOutOfMemory,
// and the runtime's last error is cleared); everything else ends as ErrorKind::kDevice with the call that failed.
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <string_view>

namespace arbalest::engine::cuda {

void check(cudaError_t result, const char* call);
void check(cudnnStatus_t result, const char* call);
void check(cublasStatus_t result, const char* call);

// "cudaMalloc(&data, bytes)" -> "cudaMalloc"
std::string_view function_of(std::string_view call);

}  // namespace arbalest::engine::cuda

#define ARBALEST_CUDA(call) ::arbalest::engine::cuda::check((call), #call)
