// Handles of cuDNN and cuBLAS. They take memory of the device that its pool may hold for nobody.
#pragma once

#include <mutex>
#include <shared_mutex>

#include "engine/cuda/device/check.h"
#include "engine/cuda/device/handle.h"

namespace arbalest::engine::cuda {

// Creating or destroying a handle may wait for the whole device, which spoils every capture of one of its streams, on
// any host thread. One gate per device: captures share it, handles come and go alone.
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
  // On device `ordinal`, bound to `stream`. Where memory is short, the device's pool first gives back what it holds for
  // nobody; then throws kOutOfMemory. Throws kDevice where memory is not the reason.
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
