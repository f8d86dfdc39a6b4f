// Tells where BF16 can be tested.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device.h"
#include "engine/host/topology.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/test_device.h"

namespace arbalest::tests {

// Whether CPU devices compute in BF16, fast or slow: oneDNN emulates missing instructions on processors with AVX-512.
inline bool cpu_computes_bfloat16() {
  const std::vector<std::string> sets = engine::host::instruction_sets();
  return std::ranges::find(sets, "avx512bw") != sets.end();
}

// Whether the device computes in BF16; warns if it does not.
inline bool computes_bfloat16(const engine::Device& device) {
  if (device.is_cuda() || cpu_computes_bfloat16()) return true;
  WARN("skipped: BF16, because this processor has no AVX-512");
  return false;
}

// Ends the test as skipped unless the device that the test is compiled for exists and computes in BF16.
inline void use_device_with_bfloat16(std::string_view device) {
  use_test_device();
  if (!is_gpu(device) && !cpu_computes_bfloat16()) skip_test("needs a processor with AVX-512");
}

}  // namespace arbalest::tests
