// Kernels that do nothing. The cost of launching them is the lower bound for all work that launches kernels.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace arbalest::bench {

// Enqueues `count` empty kernels on `stream`, each after the previous one.
void enqueue_empty_kernels(std::size_t count, cudaStream_t stream);

}  // namespace arbalest::bench
