// Functions marked so compile for the host and, in CUDA sources, for the device. The only `#if` on CUDA in the tree.
#pragma once

#if defined(__CUDACC__)
#define ARBALEST_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ARBALEST_HOST_DEVICE inline __attribute__((always_inline))
#endif
