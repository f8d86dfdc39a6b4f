// The bodies behind engine/cpu/lane_kernels.h. Compiled once for each instruction set, so all of it belongs to the file
// that includes it, and it names nothing that other files share: the linker would keep either version.
//
// Sums stay in registers while they grow. Each product needs its factors from the first-level cache, which delivers two
// vectors in the time of two products, so both factors are used for several sums.
#pragma once

#include "engine/cpu/lane_correlation_body.h"
#include "engine/cpu/lane_rows_body.h"

namespace arbalest::engine::cpu {

namespace {

// As many as leave their sums, and what is multiplied, in registers. `channels`: of a row; `filters` and
// `filters_if_narrow`: of a correlation.
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
