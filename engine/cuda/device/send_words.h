// A few words from the host to the device in the arguments of a kernel: no copy engine, which streams would queue for,
// and no read over the bus.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace arbalest::engine::cuda {

// Copies `bytes` (a multiple of 4) from host memory, which is read before the call returns, to device memory. Enqueues
// one kernel for every kMostSentBytes.
void send_words(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

inline constexpr std::size_t kMostSentBytes = 3840;  // of the 4 KB that a kernel has for its arguments

}  // namespace arbalest::engine::cuda
