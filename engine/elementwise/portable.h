// Functions marked so compile for the host and, in CUDA sources, for the device. The only `#if`s on CUDA in the tree.
#pragma once

#if defined(__CUDACC__)
#define ARBALEST_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ARBALEST_HOST_DEVICE inline __attribute__((always_inline))
#endif

// Before a loop of at most 16 rounds. A CUDA source is compiled for the host, too, by a compiler that has its own
// words.
#if defined(__CUDA_ARCH__)
#define ARBALEST_UNROLL _Pragma("unroll")
#else
#define ARBALEST_UNROLL _Pragma("GCC unroll 16")
#endif
