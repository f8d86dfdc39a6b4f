// CUDA's language extensions for g++. This header is force-included when kernels are compiled as C++ for the stand-in.
// For compilers other than nvcc, the runtime's headers define __global__, __device__ and __host__ as empty.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/cuda_stand_in/shared_memory.h"
#include "tests/cuda_stand_in/warp.h"

// One block runs at a time, and shared_memory.h gives each block separate contents. It learns here that a thread is
// about to use the variables of this function.
#undef __shared__
#define __shared__                                                               \
  {                                                                              \
    static bool shared_site_is_known; /* found by its name */                    \
    if (!shared_site_is_known) {                                                 \
      ::arbalest::tests::cuda_stand_in::use_shared_memory(shared_site_is_known); \
    }                                                                            \
  }                                                                              \
  static
#undef __launch_bounds__
#define __launch_bounds__(...)  // concerns registers, which the stand-in does not have

// Indices of the running kernel thread.
extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 blockDim;
extern dim3 gridDim;

namespace arbalest::tests::cuda_stand_in {

// Lets the block's other threads run until all have reached a barrier. It must be in the same line for all threads.
void wait_at_barrier(int line);

// Returns the dynamic shared memory of the running block. If its launch has none, records a violation and returns
// nullptr.
std::byte* dynamic_shared_memory(int line);

// A pointer in a kernel's arguments, which refers to CUDA memory.
struct Argument {
  const void* pointer = nullptr;
  bool certain = true;  // false: eight bytes of an argument of class type, which may not be a pointer
};

// function: the kernel, for attributes that cudaFuncSetAttribute has set
cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* function,
                          const std::vector<Argument>& arguments, std::function<void()> thread);

// An argument that is a pointer for each replica of a team (engine/cuda/runtime/launch.h).
template <typename T>
concept ReplicatedPointer = requires(const T& argument) {
  requires std::is_pointer_v<decltype(argument.value)>;
  argument.stride;
};

template <typename T>
void find_pointers(const T& argument, std::vector<Argument>& found) {
  static_assert(std::is_trivially_copyable_v<T>, "arguments of kernels are copied byte by byte");
  if constexpr (std::is_pointer_v<T>) {
    found.push_back({const_cast<const void*>(static_cast<const volatile void*>(argument)), true});
  } else if constexpr (ReplicatedPointer<T>) {
    find_pointers(argument.value, found);
  } else if constexpr (std::is_class_v<T> && sizeof(T) >= sizeof(void*)) {
    T members = argument;
    __builtin_clear_padding(&members);  // padding may contain any bytes, which could look like an address
    for (std::size_t place = 0; place + sizeof(void*) <= sizeof(T); place += sizeof(void*)) {
      const void* pointer = nullptr;
      std::memcpy(&pointer, reinterpret_cast<const char*>(&members) + place, sizeof(pointer));
      found.push_back({pointer, false});
    }
  }
}

}  // namespace arbalest::tests::cuda_stand_in

inline void __syncthreads(int line = __builtin_LINE()) { arbalest::tests::cuda_stand_in::wait_at_barrier(line); }

// These have nothing to do: one thread runs at a time and all its writes are visible at once, in their order. Other
// threads of the block run at barriers, other blocks between them, the host and other GPUs between the stand-in's
// steps. On a GPU other threads may see writes later and in another order. So the stand-in does not see that a fence is
// missing or in the wrong place, nor that a value was kept in a register or the L1 cache where `volatile` is missing.
inline void __threadfence() {}
inline void __threadfence_system() {}

template <typename T>
requires std::is_same_v<T, int> || std::is_same_v<T, unsigned> || std::is_same_v<T, unsigned long long> T
atomicAdd(T* address, std::type_identity_t<T> value) {
  return std::exchange(*address, *address + value);
}

namespace arbalest::tests::cuda_stand_in {

// Replaces cudaLaunchKernelEx, which needs code that nvcc generates for each kernel. Like the original, it copies the
// arguments at the call.
template <typename... Parameters, typename... Arguments>
cudaError_t launch(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... arguments) {
  return [&](Parameters... converted) {
    std::vector<Argument> pointers;
    (find_pointers(converted, pointers), ...);
    return launch_kernel(*config, reinterpret_cast<const void*>(kernel), pointers, [=] { kernel(converted...); });
  }(std::forward<Arguments>(arguments)...);
}

}  // namespace arbalest::tests::cuda_stand_in

// The overloads for kernels, which the runtime's headers have for nvcc only.
template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                                        std::size_t dynamic_bytes = 0, cudaStream_t stream = nullptr) {
  return ::cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments, dynamic_bytes,
                                       stream);
}

#define cudaLaunchKernelEx ::arbalest::tests::cuda_stand_in::launch
