#include <algorithm>

#include "engine/base/error.h"
#include "tests/engine/emulated_kernels.h"
#include "tests/engine/winograd_run.h"

// These must follow, in this order.
#include "tests/engine/emulated_bf16.h"

#include "engine/cpu/winograd/convolution.cc"
#include "engine/cpu/winograd/kernels_avx512_bf16.cc"

namespace arbalest::tests {

WinogradResults run_emulated_winograd(const WinogradCase& of, int threads, const WinogradArguments& with) {
  using engine::cpu::EmulatedWinogradConvolution;
  using engine::cpu::EmulatedWinogradWeightsGradient;
  return run_winograd<EmulatedWinogradConvolution, EmulatedWinogradWeightsGradient>(of, threads, with);
}

}  // namespace arbalest::tests
