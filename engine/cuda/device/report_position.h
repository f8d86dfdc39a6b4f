// How a stream tells the host how far it has come, and what has come of it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace arbalest::engine::cuda {

// What goes to the host with a report.
struct Words {
  std::uint32_t* to = nullptr;  // mapped host memory
  const std::uint32_t* from = nullptr;
  std::uint32_t count = 0;
};

// Copies `words`; then *passed = position, after all earlier work of `stream` and after its and the copy's writes to
// host memory are visible there.
//   passed: mapped host memory
void report_position(std::uint64_t* passed, std::uint64_t position, const Words& words, cudaStream_t stream);

}  // namespace arbalest::engine::cuda
