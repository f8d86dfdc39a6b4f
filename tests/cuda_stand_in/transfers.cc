// Copies and fills.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/memory.h"
#include "tests/cuda_stand_in/streams.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

bool is_on_device(const Place& place) {
  return place.allocation != nullptr && place.allocation->kind == MemoryKind::kDevice;
}

// Checks that both addresses agree with the kind of the copy. Otherwise the host would access device memory, or a
// device host memory.
cudaError_t check_direction(const Place& to, const Place& from, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (is_on_device(to) == to_device && is_on_device(from) == from_device) return cudaSuccess;
  violation(fmt::format("cudaMemcpyAsync: from memory of the {} to memory of the {}, and its kind says otherwise",
                        is_on_device(from) ? "device" : "host", is_on_device(to) ? "device" : "host"));
  return cudaErrorInvalidValue;
}

cudaError_t check_length(const Place& place, std::size_t bytes) {
  if (place.allocation == nullptr || bytes <= place.bytes_after) return cudaSuccess;
  violation(fmt::format("cudaMemcpyAsync: of {} bytes where only {} are left", bytes, place.bytes_after));
  return cudaErrorInvalidValue;
}

// Pageable memory is read or written before the call returns (CUDA runtime API, "API synchronization behavior").
cudaError_t copy_pageable(void* to, const void* from, std::size_t bytes, bool reads, CUstream_st& stream) {
  constexpr const char* kName = "cudaMemcpyAsync";
  if (stream.capture != nullptr) {
    return spoil(*stream.capture, cudaErrorStreamCaptureUnsupported, kName, "of pageable memory in a capture");
  }
  if (reads) {
    const auto* bytes_from = static_cast<const unsigned char*>(from);
    auto staged = std::make_shared<std::vector<unsigned char>>(bytes_from, bytes_from + bytes);
    return enqueue(stream, make_work(kName, {to}, [=] { std::memcpy(to, staged->data(), bytes); }), kName);
  }
  const cudaError_t result = enqueue(stream, make_work(kName, {from}, [=] { std::memcpy(to, from, bytes); }), kName);
  return result != cudaSuccess ? result : drain(stream, kName);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  return call("cudaMemcpyAsync", InCapture::kLegal, [&](Thread&) {
    CUstream_st* stream = find_stream(handle, "cudaMemcpyAsync");
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    const Place target = find_memory(to);
    const Place source = find_memory(from);
    for (const cudaError_t problem :
         {check_direction(target, source, kind), check_length(target, bytes), check_length(source, bytes)}) {
      if (problem != cudaSuccess) return problem;
    }
    if (source.allocation == nullptr || target.allocation == nullptr) {
      return copy_pageable(to, from, bytes, source.allocation == nullptr, *stream);
    }
    auto copy = make_work("cudaMemcpyAsync", {to, from}, [=] { std::memmove(to, from, bytes); });
    return enqueue(*stream, std::move(copy), "cudaMemcpyAsync");
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind, cudaStream_t handle) {
  return call("cudaMemcpy2DAsync", InCapture::kLegal, [&](Thread&) {
    CUstream_st* stream = find_stream(handle, "cudaMemcpy2DAsync");
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    const Place target = find_memory(to);
    const Place source = find_memory(from);
    const auto extent = [=](std::size_t pitch) { return (height - 1) * pitch + width; };
    for (const cudaError_t problem : {check_direction(target, source, kind), check_length(target, extent(to_pitch)),
                                      check_length(source, extent(from_pitch))}) {
      if (problem != cudaSuccess) return problem;
    }
    auto copy = make_work("cudaMemcpy2DAsync", {to, from}, [=] {
      for (std::size_t row = 0; row < height; ++row) {
        std::memmove(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
      }
    });
    return enqueue(*stream, std::move(copy), "cudaMemcpy2DAsync");
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t handle) {
  return call("cudaMemsetAsync", InCapture::kLegal, [&](Thread&) {
    CUstream_st* stream = find_stream(handle, "cudaMemsetAsync");
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    if (bytes == 0) return cudaSuccess;
    if (!check_device_range(to, bytes, stream->device, "cudaMemsetAsync")) return cudaErrorInvalidValue;
    auto fill = make_work("cudaMemsetAsync", {to}, [=] { std::memset(to, value, bytes); });
    return enqueue(*stream, std::move(fill), "cudaMemsetAsync");
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
