#include "tests/engine/emulated_bf16.h"

// This must follow.
#include "engine/cpu/passes/native_bfloat16_avx512_bf16.cc"
