// Helpers for the tests of the stand-in. These tests call the CUDA runtime directly, because they must also make wrong
// calls.
#pragma once

#include "tests/cuda_stand_in/kernel_language.h"
#include "tests/cuda_stand_in/stand_in.h"

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace arbalest::tests {

inline void must(cudaError_t result) { REQUIRE(result == cudaSuccess); }

inline cudaStream_t make_stream() {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0));
  return stream;
}

inline cudaEvent_t make_event() {
  cudaEvent_t event = nullptr;
  must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

template <typename T>
T* allocate(std::size_t count) {
  void* data = nullptr;
  must(cudaMalloc(&data, count * sizeof(T)));
  return static_cast<T*>(data);
}

template <typename T>
void upload(T* to, const std::vector<T>& from) {
  must(cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, cudaStreamPerThread));
  must(cudaStreamSynchronize(cudaStreamPerThread));
}

template <typename T>
std::vector<T> download(const T* from, std::size_t count) {
  std::vector<T> to(count);
  must(cudaMemcpyAsync(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, cudaStreamPerThread));
  must(cudaStreamSynchronize(cudaStreamPerThread));
  return to;
}

template <typename... Parameters, typename... Arguments>
cudaError_t run(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
                Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

// *data = *data * factor + addend. The result of several calls depends on their order.
__global__ inline void apply(float* data, float factor, float addend) { *data = *data * factor + addend; }

// Returns all violations as one text.
inline std::string violations() {
  std::string text;
  for (const std::string& violation : cuda_stand_in::violations()) text += violation + "\n";
  return text;
}

}  // namespace arbalest::tests
