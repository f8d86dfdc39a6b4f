// Splits a CorrelationTask of any size into parts that LaneKernels::correlate accepts and that can run in parallel.
#pragma once

#include <cstdint>

#include "engine/cpu/lanes/kernels.h"

namespace arbalest::engine::cpu {

class Correlation {
 public:
  // `whole`: a task for all channels and `filters` filters. The kernels must outlive this object.
  Correlation(const LaneKernels& kernels, const CorrelationTask& whole, std::int64_t filters);

  std::int64_t parts() const { return filter_parts_ * channel_parts_; }
  void run(std::int64_t part) const;

 private:
  const LaneKernels& kernels_;
  CorrelationTask whole_;
  std::int64_t filters_;
  std::int64_t taps_;
  std::int64_t filter_parts_;
  std::int64_t channel_parts_;
};

}  // namespace arbalest::engine::cpu
