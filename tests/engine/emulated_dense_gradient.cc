#include "tests/engine/emulated_bf16.h"

// This must follow.
#include "engine/cpu/dense_gradient/dense_gradient_avx512_bf16.cc"
