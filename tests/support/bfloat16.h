// Where BF16 can be tested.
#pragma once

#include <algorithm>

#include "engine/device.h"
#include "engine/host/topology.h"
#include "tests/support/catch.h"

namespace arbalest::tests {

// Whether CPU devices compute in BF16, fast or not: oneDNN makes up for what a processor with AVX-512 lacks for it.
inline bool cpu_computes_bfloat16() {
  const std::vector<std::string> sets = engine::host::instruction_sets();
  return std::ranges::find(sets, "avx512bw") != sets.end();
}

// Says so if it does not.
inline bool computes_bfloat16(const engine::Device& device) {
  if (device.is_cuda() || cpu_computes_bfloat16()) return true;
  WARN("skipped: BF16, because this processor has no AVX-512");
  return false;
}

}  // namespace arbalest::tests
