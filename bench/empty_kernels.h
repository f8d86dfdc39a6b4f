// Kernels that do nothing: what it costs to launch them is the floor of everything that launches kernels.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

namespace arbalest::bench {

// Enqueues `count` empty kernels on `stream`, each after the one before.
void enqueue_empty_kernels(std::size_t count, cudaStream_t stream);

}  // namespace arbalest::bench
