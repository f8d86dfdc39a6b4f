#include "engine/cuda/runtime/memory.h"

#include <cstdint>
#include <cstring>

#include "engine/base/error.h"
#include "engine/cuda/runtime/check.h"

namespace arbalest::engine::cuda {

namespace {

// Errors of freeing are ignored: an error of the device has been reported by then.
void release_device(void* data, std::size_t) noexcept { static_cast<void>(cudaFree(data)); }
void release_host(void* data, std::size_t) noexcept { static_cast<void>(cudaFreeHost(data)); }

// Allocates on the current device.
void* take(std::size_t bytes) {
  void* data = nullptr;
  const cudaError_t result = cudaMallocAsync(&data, bytes, cudaStreamPerThread);
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());  // clears the error, so that the next call does not see it
    int ordinal = 0;
    ARBALEST_CUDA(cudaGetDevice(&ordinal));
    fail(ErrorKind::kOutOfMemory, "cuda:{}: cannot allocate {} bytes", ordinal, bytes);
  }
  check(result, "cudaMallocAsync");
  return data;
}

}  // namespace

Buffer allocate_device(std::size_t bytes) {
  Buffer buffer = allocate_workspace(bytes);
  if (bytes == 0) return buffer;
  ARBALEST_CUDA(cudaMemsetAsync(buffer.data(), 0, bytes, cudaStreamPerThread));
  ARBALEST_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
  return buffer;
}

Buffer allocate_workspace(std::size_t bytes) {
  if (bytes == 0) return {};
  Buffer buffer(take(bytes), bytes, release_device);
  ARBALEST_CUDA(cudaStreamSynchronize(cudaStreamPerThread));
  return buffer;
}

Buffer allocate_mapped(std::size_t bytes) {
  if (bytes == 0) return {};
  void* data = nullptr;
  ARBALEST_CUDA(cudaHostAlloc(&data, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
  Buffer buffer(data, bytes, release_host);
  std::memset(data, 0, bytes);
  return buffer;
}

void keep_freed_memory(int ordinal) {
  cudaMemPool_t pool = nullptr;
  ARBALEST_CUDA(cudaDeviceGetDefaultMemPool(&pool, ordinal));
  std::uint64_t threshold = UINT64_MAX;
  ARBALEST_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

void trim_pool(int ordinal) {
  cudaMemPool_t pool = nullptr;
  ARBALEST_CUDA(cudaDeviceGetDefaultMemPool(&pool, ordinal));
  ARBALEST_CUDA(cudaMemPoolTrimTo(pool, 0));
}

std::size_t driver_free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  ARBALEST_CUDA(cudaMemGetInfo(&free, &total));
  return free;
}

std::size_t free_device_memory(int ordinal) {
  cudaMemPool_t pool = nullptr;
  ARBALEST_CUDA(cudaDeviceGetDefaultMemPool(&pool, ordinal));
  std::uint64_t reserved = 0;
  std::uint64_t used = 0;
  ARBALEST_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
  ARBALEST_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
  return driver_free_memory() + static_cast<std::size_t>(reserved - used);
}

}  // namespace arbalest::engine::cuda
