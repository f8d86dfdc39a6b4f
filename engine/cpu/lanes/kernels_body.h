// Builds the LaneKernels table of one instruction set. Each kernels_<isa>.cc includes this file and is compiled with
// that set's flags. The loops are in rows_body.h and correlation_body.h.
//
// Everything is in an unnamed namespace. With external linkage the linker would merge the versions of a template, and
// AVX-512 code could run on an AVX2 processor.
//
// Accumulators stay in registers. The L1 cache loads as many vectors per cycle as the processor has multiply-adds, so
// each loaded factor must serve several accumulators.
#pragma once

#include "engine/cpu/lanes/correlation_body.h"
#include "engine/cpu/lanes/rows_body.h"

namespace arbalest::engine::cpu {

namespace {

// Fills the table. The limits are the largest for which all accumulators and factors fit in registers. `channels`: most
// output channels of one row() call. `filters`: most filters of one correlate() call; `filters_if_narrow`: the same for
// kernels of up to kNarrow columns.
template <typename Arithmetic, int channels>
constexpr LaneKernels make_kernels(Index filters, Index filters_if_narrow,
                                   void (*correlate)(Index filters, const CorrelationTask& task)) {
  return {static_cast<Index>(sizeof(LaneUnit) / sizeof(typename Arithmetic::Element)),
          Arithmetic::kWidth,
          Arithmetic::kCacheBytes,
          channels,
          any_row<Arithmetic, channels>,
          filters,
          filters_if_narrow,
          correlate};
}

}  // namespace

}  // namespace arbalest::engine::cpu
