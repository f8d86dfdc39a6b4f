// Handles of cuDNN and cuBLAS. They take device memory from the driver; the pool may hold that memory unused.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handle.h"

namespace arbalest::engine::cuda {

// Creating or destroying a handle may synchronize the whole device, which breaks every graph capture on the device, on
// any host thread. Each device has one gate: captures share it, and a change of handles holds it exclusively.
class CaptureGate {
 public:
  [[nodiscard]] std::shared_lock<std::shared_mutex> enter_capture() { return std::shared_lock(mutex_); }
  [[nodiscard]] std::unique_lock<std::shared_mutex> change_handles() { return std::unique_lock(mutex_); }

 private:
  std::shared_mutex mutex_;
};

// The library handles of one learner's stream. The device must be current when they are created and destroyed.
class LibraryHandles {
 public:
  // Binds handles on device `ordinal` to `stream`. If memory is short, the device's pool first releases its unused
  // memory. Throws kOutOfMemory if that is not enough, and kDevice for other errors.
  LibraryHandles(int ordinal, cudaStream_t stream, CaptureGate& gate);
  LibraryHandles(LibraryHandles&&) = delete;
  LibraryHandles& operator=(LibraryHandles&&) = delete;
  ~LibraryHandles();

  cudnnHandle_t cudnn() const noexcept { return cudnn_.get(); }
  cublasHandle_t cublas() const noexcept { return cublas_.get(); }

 private:
  int ordinal_;
  CaptureGate& gate_;
  Handle<cudnnHandle_t, cudnnDestroy> cudnn_;
  Handle<cublasHandle_t, cublasDestroy> cublas_;
};

}  // namespace arbalest::engine::cuda
