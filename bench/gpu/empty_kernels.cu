#include "bench/gpu/empty_kernels.h"

#include "engine/cuda/runtime/launch.h"

namespace arbalest::bench {

namespace {

__device__ void do_nothing() {}

}  // namespace

void enqueue_empty_kernels(std::size_t count, cudaStream_t stream) {
  for (std::size_t i = 0; i < count; ++i) engine::cuda::launch<do_nothing>(1, {stream});
}

}  // namespace arbalest::bench
