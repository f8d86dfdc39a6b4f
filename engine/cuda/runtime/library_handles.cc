#include "engine/cuda/runtime/library_handles.h"

#include "engine/base/error.h"
#include "engine/cuda/runtime/memory.h"

namespace arbalest::engine::cuda {

namespace {

// A library that finds no memory may report an internal error, or that it is not initialized, instead of a failed
// allocation. With less free memory than this, such an error counts as out of memory. Handles, and the kernels loaded
// with the first of them, need less than this.
constexpr std::size_t kEnoughMemory = std::size_t{256} << 20U;

bool is_success(cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS; }
bool is_success(cublasStatus_t status) { return status == CUBLAS_STATUS_SUCCESS; }
const char* text_of(cudnnStatus_t status) { return cudnnGetErrorString(status); }
const char* text_of(cublasStatus_t status) { return cublasGetStatusString(status); }

// create() returns a library's status.
template <typename Create>
void create_handle(int ordinal, const char* function, const Create& create) {
  auto status = create();
  if (is_success(status)) return;
  static_cast<void>(cudaGetLastError());  // `status` already reports this error
  const std::size_t left = driver_free_memory();
  if (left >= kEnoughMemory) fail(ErrorKind::kDevice, "{}: {}", function, text_of(status));
  trim_pool(ordinal);
  status = create();
  if (is_success(status)) return;
  static_cast<void>(cudaGetLastError());
  fail(ErrorKind::kOutOfMemory, "cuda:{}: {}: {}, with {} MiB of device memory left", ordinal, function,
       text_of(status), driver_free_memory() >> 20U);
}

}  // namespace

LibraryHandles::LibraryHandles(int ordinal, cudaStream_t stream, CaptureGate& gate) : ordinal_(ordinal), gate_(gate) {
  const auto alone = gate_.change_handles();
  try {
    // The first of these handles loads cuBLAS, which cuDNN loads, too, and would search in fewer places.
    create_handle(ordinal_, "cublasCreate", [&] { return cublasCreate(cublas_.put()); });
    ARBALEST_CUDA(cublasSetStream(cublas_.get(), stream));
    create_handle(ordinal_, "cudnnCreate", [&] { return cudnnCreate(cudnn_.put()); });
    ARBALEST_CUDA(cudnnSetStream(cudnn_.get(), stream));
  } catch (...) {
    cudnn_ = {};
    cublas_ = {};  // destroyed while the gate is held
    throw;
  }
}

LibraryHandles::~LibraryHandles() {
  static_cast<void>(cudaSetDevice(ordinal_));  // another device may be current
  const auto alone = gate_.change_handles();
  cudnn_ = {};
  cublas_ = {};
}

}  // namespace arbalest::engine::cuda
