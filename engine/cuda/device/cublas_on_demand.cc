// The functions of cuBLAS that the engine calls. Each passes its call on to the shared library, which is loaded by the
// first call. A program that is linked with the library would load it and libcublasLt at every start, which takes 80
// ms, also where there is no GPU.
#include <cublas_v2.h>
#include <dlfcn.h>

#include <string>

#include "engine/base/error.h"

namespace arbalest::engine::cuda {

namespace {

void* load_library() {
  const std::string name = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fail(ErrorKind::kDevice, "cuBLAS cannot be loaded: {}; install it, or add its folder to LD_LIBRARY_PATH",
         dlerror());
  }
  return library;
}

void* library() {
  static void* const loaded = load_library();
  return loaded;
}

// Throws kDevice if the library or the function is missing.
template <typename Function>
Function* find(const char* name) {
  void* const found = dlsym(library(), name);
  if (found == nullptr) fail(ErrorKind::kDevice, "cuBLAS has no function {}: {}", name, dlerror());
  return reinterpret_cast<Function*>(found);
}

}  // namespace

}  // namespace arbalest::engine::cuda

// Hidden, so that no library takes these for the real ones.
#define ARBALEST_CUBLAS extern "C" __attribute__((visibility("hidden")))

using arbalest::engine::cuda::find;

ARBALEST_CUBLAS cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  static auto* const create = find<cublasStatus_t(cublasHandle_t*)>("cublasCreate_v2");
  return create(handle);
}

ARBALEST_CUBLAS cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  static auto* const destroy = find<cublasStatus_t(cublasHandle_t)>("cublasDestroy_v2");
  return destroy(handle);
}

ARBALEST_CUBLAS cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  static auto* const set = find<cublasStatus_t(cublasHandle_t, cudaStream_t)>("cublasSetStream_v2");
  return set(handle, stream);
}

ARBALEST_CUBLAS cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
  static auto* const set = find<cublasStatus_t(cublasHandle_t, void*, size_t)>("cublasSetWorkspace_v2");
  return set(handle, workspace, bytes);
}

ARBALEST_CUBLAS cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  static auto* const set = find<cublasStatus_t(cublasHandle_t, cublasMath_t)>("cublasSetMathMode");
  return set(handle, mode);
}

ARBALEST_CUBLAS cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                            int m, int n, int k, const void* alpha, const void* a, cudaDataType a_type,
                                            int lda, const void* b, cudaDataType b_type, int ldb, const void* beta,
                                            void* c, cudaDataType c_type, int ldc, cublasComputeType_t compute,
                                            cublasGemmAlgo_t algorithm) {
  static auto* const multiply =
      find<cublasStatus_t(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*,
                          cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
                          cublasComputeType_t, cublasGemmAlgo_t)>("cublasGemmEx");
  return multiply(handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute,
                  algorithm);
}

ARBALEST_CUBLAS const char* cublasGetStatusString(cublasStatus_t status) {
  static auto* const text = find<const char*(cublasStatus_t)>("cublasGetStatusString");
  return text(status);
}
