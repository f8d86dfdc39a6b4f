// Limits of a kernel's launch.
#pragma once

#include <cstddef>

#include "tests/cuda_stand_in/stand_in.h"

namespace arbalest::tests::cuda_stand_in {

// The most shared memory of a block in bytes: for every kernel, and for kernels whose attribute
// cudaFuncAttributeMaxDynamicSharedMemorySize allows more (CUDA programming guide, "Compute Capabilities").
inline constexpr std::size_t kSharedMemory = std::size_t{48} << 10U;
std::size_t most_shared_memory(const Machine& machine);

}  // namespace arbalest::tests::cuda_stand_in
