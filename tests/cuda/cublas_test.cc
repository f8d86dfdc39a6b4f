// The functions of the real cuBLAS that the engine loads by name. Without a GPU they only refuse.
#include <cublas_v2.h>

#include <string>

#include "tests/support/catch.h"

namespace arbalest::tests {

TEST_CASE("cuBLAS is loaded on demand, and has each function that the engine calls") {
  CHECK(std::string(cublasGetStatusString(CUBLAS_STATUS_ALLOC_FAILED)) == "the resource allocation failed");
  cublasHandle_t none = nullptr;
  CHECK(cublasCreate(nullptr) != CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetStream(none, nullptr) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetWorkspace(none, nullptr, 0) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSetMathMode(none, CUBLAS_DEFAULT_MATH) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasGemmEx(none, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, nullptr, nullptr, CUDA_R_32F, 1, nullptr, CUDA_R_32F, 1,
                     nullptr, nullptr, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasDestroy(none) == CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace arbalest::tests
