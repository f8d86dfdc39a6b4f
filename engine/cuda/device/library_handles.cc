#include "engine/cuda/device/library_handles.h"

#include "engine/cuda/device/memory.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

// A library that finds no memory reports an internal error or that it is not initialized as often as a failed
// allocation. With less than this left, such a failure is put down to memory: handles, and the kernels that are loaded
// with the first of them, have all the room that they need above it.
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
  static_cast<void>(cudaGetLastError());  // what the library met is in its status
  const std::size_t left = driver_memory();
  if (left >= kEnoughMemory) fail(ErrorKind::kDevice, "{}: {}", function, text_of(status));
  release_pool(ordinal);
  status = create();
  if (is_success(status)) return;
  static_cast<void>(cudaGetLastError());
  fail(ErrorKind::kOutOfMemory, "cuda:{}: {}: {}, with {} MiB of device memory left", ordinal, function,
       text_of(status), driver_memory() >> 20U);
}

}  // namespace

LibraryHandles::LibraryHandles(int ordinal, cudaStream_t stream, CaptureGate& gate) : ordinal_(ordinal), gate_(gate) {
  const auto alone = gate_.change_handles();
  try {
    create_handle(ordinal_, "cudnnCreate", [&] { return cudnnCreate(cudnn_.put()); });
    ARBALEST_CUDA(cudnnSetStream(cudnn_.get(), stream));
    create_handle(ordinal_, "cublasCreate", [&] { return cublasCreate(cublas_.put()); });
    ARBALEST_CUDA(cublasSetStream(cublas_.get(), stream));
  } catch (...) {
    cublas_ = {};
    cudnn_ = {};  // while the gate is still held
    throw;
  }
}

LibraryHandles::~LibraryHandles() {
  static_cast<void>(cudaSetDevice(ordinal_));  // the present one may be another
  const auto alone = gate_.change_handles();
  cudnn_ = {};
  cublas_ = {};
}

}  // namespace arbalest::engine::cuda
