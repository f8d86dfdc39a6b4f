// Sends a few words from the host to the device as kernel arguments. This needs no copy engine, which streams would
// queue for, and no read over the bus.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace arbalest::engine::cuda {

// Copies `bytes` (a multiple of 4) from host memory to device memory. Reads the host memory before it returns. Enqueues
// one kernel per kMostSentBytes.
void send_words(void* to, const void* from, std::size_t bytes, cudaStream_t stream);

inline constexpr std::size_t kMostSentBytes = 3840;  // a kernel's arguments may have 4 KB

}  // namespace arbalest::engine::cuda
