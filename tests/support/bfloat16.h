// Where BF16 can be tested.
#pragma once

#include <algorithm>

#include "engine/device.h"
#include "engine/host/topology.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

// Whether the device computes in BF16, fast or not: oneDNN does in float32 what a processor with AVX-512 lacks for it.
inline bool computes_bfloat16(const engine::Device& device) {
  const std::vector<std::string> sets = engine::host::instruction_sets();
  if (device.is_cuda() || std::ranges::find(sets, "avx512bw") != sets.end()) return true;
  WARN("skipped: BF16, because this processor has no AVX-512");
  return false;
}

}  // namespace arbalest::tests
