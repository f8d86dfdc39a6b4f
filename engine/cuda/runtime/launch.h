// Launches our kernels.
//
// A kernel is a __device__ function that computes for one replica. launch() runs it for all replicas of a team
// (engine/replica_memory.h) at once: gridDim.y counts the replicas, and each gets the addresses of its own memory. A
// kernel therefore uses blockIdx.x and gridDim.x only. Large parameters without addresses, whose elements are chosen at
// run time, are taken by reference: a copy would lie in local memory. A parameter of class type with addresses needs,
// unless its kernel is never recorded for a team,
//     template <typename Visitor> __host__ __device__ constexpr void visit_addresses(Parameter& of, Visitor&& visit)
// which calls visit(address) for each of them, in the namespace of the class (it is found by its argument).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/grid.h"
#include "engine/cuda/runtime/team_stream.h"

namespace arbalest::engine::cuda {

namespace replicated {

// A visitor of addresses, which counts them.
struct Count {
  int* count;
  template <typename T>
  __host__ __device__ constexpr void operator()(T*& /*address*/) const {
    ++*count;
  }
};

template <typename T>
concept HasAddresses = requires(T& of, int* count) {
  visit_addresses(of, Count{count});
};

template <HasAddresses T>
constexpr int count_addresses() {
  T of{};
  int count = 0;
  visit_addresses(of, Count{&count});
  return count;
}

// Collects the addresses.
struct Collect {
  const void** next;
  template <typename T>
  __host__ __device__ void operator()(T*& address) {
    *next++ = address;
  }
};

// Moves each address to a replica.
struct Move {
  const std::ptrdiff_t* next;
  std::ptrdiff_t replica;
  template <typename T>
  __host__ __device__ void operator()(T*& address) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    address = reinterpret_cast<T*>(at + static_cast<std::uintptr_t>(replica * *next++));
  }
};

// An argument as replica 0 gets it; at() returns it as any replica does.
template <typename T>
struct Argument {
  Argument(const TeamStream& /*stream*/, const T& of) : value(of) {}
  __device__ const T& at(std::ptrdiff_t /*replica*/) const { return value; }

  T value;
};

template <typename T>
struct Argument<T*> {
  Argument(const TeamStream& stream, T* of) : value(of), stride(stream.stride_of(of)) {}
  __device__ T* at(std::ptrdiff_t replica) const {
    T* moved = value;
    Move{&stride, replica}(moved);
    return moved;
  }

  T* value;
  std::ptrdiff_t stride;
};

template <HasAddresses T>
struct Argument<T> {
  Argument(const TeamStream& stream, const T& of) : value(of) {
    const void* addresses[count_addresses<T>()];
    visit_addresses(value, Collect{addresses});
    for (int i = 0; i < count_addresses<T>(); ++i) strides[i] = stream.stride_of(addresses[i]);
  }
  __device__ T at(std::ptrdiff_t replica) const {
    T moved = value;
    visit_addresses(moved, Move{strides, replica});
    return moved;
  }

  T value;
  std::ptrdiff_t strides[count_addresses<T>()];
};

template <auto kernel, typename... Values>
__global__ void run(Argument<Values>... arguments) {
  kernel(arguments.at(blockIdx.y)...);
}

// The first argument is null. Its type is the kernel's, from which the compiler finds the types of the parameters.
template <auto kernel, typename... Parameters>
void launch(void (* /*type*/)(Parameters...), const cudaLaunchConfig_t& config, const TeamStream& stream,
            const std::remove_cvref_t<Parameters>&... arguments) {
  ARBALEST_CUDA(cudaLaunchKernelEx(&config, run<kernel, std::remove_cvref_t<Parameters>...>,
                                   Argument<std::remove_cvref_t<Parameters>>(stream, arguments)...));
}

}  // namespace replicated

// Enqueues kernel(arguments...) with `blocks` blocks of kThreads threads for each replica.
template <auto kernel, typename... Arguments>
void launch(std::int64_t blocks, const TeamStream& stream, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(stream.count()));
  config.blockDim = dim3(kThreads);
  config.stream = stream.handle;
  replicated::launch<kernel>(static_cast<decltype(kernel)>(nullptr), config, stream, arguments...);
}

}  // namespace arbalest::engine::cuda
