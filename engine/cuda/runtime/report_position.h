// Reports to the host how far a stream has come, together with a few result words.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace arbalest::engine::cuda {

// Words that a report copies to the host.
struct Words {
  std::uint32_t* to = nullptr;  // mapped host memory
  const std::uint32_t* from = nullptr;
  std::uint32_t count = 0;
};

// Copies `words`, then sets *passed = position. Both happen after all earlier work of `stream`. The host sees *passed
// only after it can see all earlier writes to host memory, including the copied words.
//   passed: mapped host memory
void report_position(std::uint64_t* passed, std::uint64_t position, const Words& words, cudaStream_t stream);

}  // namespace arbalest::engine::cuda
