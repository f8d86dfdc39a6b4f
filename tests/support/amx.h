// Processors with AMX, for whose tiles oneDNN chooses other layouts.
#pragma once

#include "tests/support/skip.h"

namespace arbalest::tests {

inline bool has_amx() { return __builtin_cpu_supports("amx-bf16") != 0; }

// Ends a test of our bfloat16 convolutions: with AMX oneDNN's kernels run instead (engine/cpu/lanes/lanes.cc).
inline void skip_with_amx() {
  if (has_amx()) skip_test("with AMX these layers run oneDNN's kernels");
}

}  // namespace arbalest::tests
