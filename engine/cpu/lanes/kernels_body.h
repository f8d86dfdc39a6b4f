// The bodies of engine/cpu/lanes/kernels.h, compiled once for each instruction set. All of it belongs to the including
// file and shares no names with other files; otherwise the linker would keep only one version.
//
// Sums stay in registers while they grow. The first-level cache delivers two vectors in the time of two products, so
// both factors of a product are used for several sums.
#pragma once

#include "engine/cpu/lanes/correlation_body.h"
#include "engine/cpu/lanes/rows_body.h"

namespace arbalest::engine::cpu {

namespace {

// Makes kernels for as many channels and filters as leave their sums and factors in registers. `channels`: of a row;
// `filters` and `filters_if_narrow`: of a correlation.
template <typename OfRows, int channels>
constexpr LaneKernels make_kernels(Index filters, Index filters_if_narrow,
                                   void (*correlate)(Index filters, const CorrelationTask& task)) {
  return {static_cast<Index>(sizeof(LaneUnit) / sizeof(typename OfRows::Element)),
          OfRows::kWidth,
          OfRows::kCacheBytes,
          channels,
          any_row<OfRows, channels>,
          filters,
          filters_if_narrow,
          correlate};
}

}  // namespace

}  // namespace arbalest::engine::cpu
