// How a stream tells the host how far it has come.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace arbalest::engine::cuda {

// *passed = position, after all earlier work of `stream` and after its writes to host memory are visible there.
//   passed: mapped host memory
void report_position(std::uint64_t* passed, std::uint64_t position, cudaStream_t stream);

}  // namespace arbalest::engine::cuda
