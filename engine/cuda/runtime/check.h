// These functions turn errors of CUDA, cuDNN and cuBLAS into exceptions (NCCL's: collective.h). Code that can recover
// from an error examines the result itself, and destructors ignore it. Out of memory is recoverable and throws
// ErrorKind::kOutOfMemory. The check of a cudaError_t then also clears the runtime's last error. Other errors throw
// kDevice with the name of the call.
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
