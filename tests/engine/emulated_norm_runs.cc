#include "tests/engine/emulated_bf16.h"

// These must follow.
#include "engine/cpu/normalization/runs.h"
#define __AVX512F__ 1
#define __AVX512BF16__ 1
#include "engine/cpu/normalization/runs_avx512_bf16.cc"
