// Marks functions that compile for the host and, in CUDA sources, for the device. No other file has an `#if` on CUDA.
#pragma once

#if defined(__CUDACC__)
#define ARBALEST_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ARBALEST_HOST_DEVICE inline __attribute__((always_inline))
#endif

// Unrolls the next loop, of at most 16 iterations. CUDA sources are also compiled by a host compiler, which has its own
// pragma.
#if defined(__CUDA_ARCH__)
#define ARBALEST_UNROLL _Pragma("unroll")
#else
#define ARBALEST_UNROLL _Pragma("GCC unroll 16")
#endif
