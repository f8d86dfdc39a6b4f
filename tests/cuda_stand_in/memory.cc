#include "tests/cuda_stand_in/memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/streams.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

// cudaMalloc's alignment, and the size of the guards before and after an allocation, which nothing may change. Guards
// and new memory are filled with the bytes of a NaN, so that reading unwritten memory is noticed.
constexpr std::size_t kGuard = 256;
constexpr unsigned char kFill = 0xFF;
// Only a workspace of a library is larger in tests. Its pages cost more time than all other work of a short test, so
// only its ends are filled.
constexpr std::size_t kLargestFilled = std::size_t{24} << 20U;
constexpr std::size_t kFilledEnd = std::size_t{64} << 10U;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

Device& device_of(int ordinal) { return state().devices[static_cast<std::size_t>(ordinal)]; }

std::size_t free_bytes(const Device& device) {
  return state().machine.memory - device.pool_reserved - device.elsewhere;
}

// Fills what was allocated, so that a read before the first write is seen.
void fill(std::span<unsigned char> block) {
  if (block.size() <= kLargestFilled) return static_cast<void>(std::ranges::fill(block, kFill));
  std::ranges::fill(block.first(kFilledEnd), kFill);
  std::ranges::fill(block.last(kFilledEnd), kFill);
}

// Returns false if neither the pool nor the driver has enough memory.
bool take_of_pool(Device& device, std::size_t bytes) {
  const std::size_t kept = device.pool_reserved - device.pool_used;
  const std::size_t more = bytes > kept ? bytes - kept : 0;
  if (more > free_bytes(device)) return false;
  device.pool_reserved += more;
  device.pool_used += bytes;
  return true;
}

void trim_pool(Device& device, std::size_t keep) {
  device.pool_reserved = std::min(device.pool_reserved, std::max(device.pool_used, keep));
}

cudaError_t allocate(MemoryKind kind, bool is_pooled, int device, std::size_t bytes, void** address) {
  if (bytes == 0) {
    *address = nullptr;
    return cudaSuccess;
  }
  if (kind == MemoryKind::kDevice) {
    const bool taken = is_pooled ? take_of_pool(device_of(device), bytes) : take_elsewhere(device, bytes);
    if (!taken) return cudaErrorMemoryAllocation;
  }
  Allocation allocation{kind, is_pooled, device, bytes, Block(bytes + 2 * kGuard, kind == MemoryKind::kDevice)};
  const DeviceAccess access;
  const std::span<unsigned char> block = allocation.block.bytes();
  fill(block);
  void* data = block.subspan(kGuard).data();
  *address = data;
  state().memory.emplace(number(data), std::move(allocation));
  return cudaSuccess;
}

bool guards_are_whole(const Allocation& allocation) {
  const DeviceAccess access;
  const auto whole = [](std::span<const unsigned char> bytes) {
    return std::ranges::all_of(bytes, [](unsigned char byte) { return byte == kFill; });
  };
  return whole(allocation.block.bytes().first(kGuard)) && whole(allocation.block.bytes().last(kGuard));
}

bool uses(const Work& work, std::uintptr_t data, std::size_t bytes) {
  return std::ranges::any_of(work.uses,
                             [&](const void* used) { return number(used) >= data && number(used) < data + bytes; });
}

// If enqueued work still uses the memory, records a violation and returns false.
bool is_unused(std::uintptr_t data, const Allocation& allocation, const char* function) {
  bool unused = true;
  for (const CUstream_st* stream : state().streams) {
    if (state().devices[static_cast<std::size_t>(stream->device)].failure != cudaSuccess) continue;
    for (const CUstream_st::Entry& entry : stream->queue) {
      if (!uses(*entry.work, data, allocation.bytes)) continue;
      violation(fmt::format("{}: of memory that enqueued work still uses ({})", function, entry.work->name));
      unused = false;
    }
  }
  return unused;
}

cudaError_t release(MemoryKind kind, const void* address, const char* function) {
  if (address == nullptr) return cudaSuccess;
  const auto found = state().memory.find(number(address));
  if (found == state().memory.end() || found->second.kind != kind) {
    violation(fmt::format("{}: of an address that was not allocated so, or has been freed", function));
    return cudaErrorInvalidValue;
  }
  Allocation& allocation = found->second;
  // Memory that is still in use is kept, so that the test reports the violation instead of crashing.
  const bool unused = is_unused(found->first, allocation, function);
  if (!guards_are_whole(allocation)) {
    violation(fmt::format("{}: something wrote before or after these {} bytes", function, allocation.bytes));
  }
  if (allocation.is_pooled) {
    Device& device = device_of(allocation.device);
    device.pool_used -= allocation.bytes;
    trim_pool(device, device.pool.release_threshold);
  } else if (kind == MemoryKind::kDevice) {
    give_back_elsewhere(allocation.device, allocation.bytes);
  }
  if (!unused) state().freed_too_early.push_back(std::move(allocation));
  state().memory.erase(found);
  return cudaSuccess;
}

}  // namespace

Place find_memory(const void* address) {
  auto next = state().memory.upper_bound(number(address));
  if (next == state().memory.begin()) return {};
  const auto& [data, allocation] = *--next;
  const std::size_t offset = number(address) - data;
  if (offset >= allocation.bytes) return {};
  return {&allocation, allocation.bytes - offset};
}

bool take_elsewhere(int device, std::size_t bytes) {
  if (bytes > free_bytes(device_of(device))) return false;
  device_of(device).elsewhere += bytes;
  return true;
}

void give_back_elsewhere(int device, std::size_t bytes) { device_of(device).elsewhere -= bytes; }

bool check_device_range(const void* address, std::size_t bytes, int device, const char* function) {
  const Place place = find_memory(address);
  if (place.allocation == nullptr) {
    violation(fmt::format("{}: of an address that is no memory of CUDA's", function));
    return false;
  }
  if (place.bytes_after < bytes) {
    violation(fmt::format("{}: of {} bytes where only {} are left", function, bytes, place.bytes_after));
    return false;
  }
  if (place.allocation->kind == MemoryKind::kDevice && place.allocation->device != device) {
    violation(fmt::format("{}: on device {} of memory of device {}", function, device, place.allocation->device));
    return false;
  }
  return true;
}

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  return call("cudaMalloc", InCapture::kIllegal,
              [&](Thread& thread) { return allocate(MemoryKind::kDevice, false, thread.device, bytes, address); });
}

// Illegal in a capture. CUDA would make it a node, but such a graph can be launched only once.
cudaError_t cudaMallocAsync(void** address, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMallocAsync", InCapture::kIllegal, [&](Thread&) {
    const CUstream_st* stream = find_stream(handle, "cudaMallocAsync");
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return allocate(MemoryKind::kDevice, true, stream->device, bytes, address);
  });
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned) {
  return call("cudaHostAlloc", InCapture::kIllegal,
              [&](Thread& thread) { return allocate(MemoryKind::kPinned, false, thread.device, bytes, address); });
}

cudaError_t cudaFree(void* address) {
  return call("cudaFree", InCapture::kIllegal,
              [&](Thread&) { return release(MemoryKind::kDevice, address, "cudaFree"); });
}

cudaError_t cudaFreeHost(void* address) {
  return call("cudaFreeHost", InCapture::kIllegal,
              [&](Thread&) { return release(MemoryKind::kPinned, address, "cudaFreeHost"); });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int ordinal) {
  return call("cudaDeviceGetDefaultMemPool", InCapture::kLegal, [&](Thread&) {
    if (ordinal < 0 || ordinal >= static_cast<int>(state().devices.size())) return cudaErrorInvalidDevice;
    *pool = &state().devices[static_cast<std::size_t>(ordinal)].pool;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", InCapture::kLegal, [&](Thread& thread) {
    *total = state().machine.memory;
    *free = free_bytes(device_of(thread.device));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolGetAttribute", InCapture::kLegal, [&](Thread&) {
    const Device& device = device_of(pool->device);
    std::uint64_t bytes = 0;
    if (attribute == cudaMemPoolAttrReservedMemCurrent) {
      bytes = device.pool_reserved;
    } else if (attribute == cudaMemPoolAttrUsedMemCurrent) {
      bytes = device.pool_used;
    } else {
      return cudaErrorInvalidValue;
    }
    std::memcpy(value, &bytes, sizeof(bytes));
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep) {
  return call("cudaMemPoolTrimTo", InCapture::kIllegal, [&](Thread&) {
    trim_pool(device_of(pool->device), keep);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return call("cudaMemPoolSetAttribute", InCapture::kLegal, [&](Thread&) {
    if (attribute != cudaMemPoolAttrReleaseThreshold) return cudaErrorInvalidValue;
    std::memcpy(&pool->release_threshold, value, sizeof(pool->release_threshold));
    return cudaSuccess;
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
