#include "engine/cpu/lanes/correlation.h"

namespace arbalest::engine::cpu {

Correlation::Correlation(const LaneKernels& kernels, const CorrelationTask& whole, std::int64_t filters)
    : kernels_(kernels), whole_(whole), filters_(filters), taps_(whole.kernel_height * whole.kernel_width) {
  const std::int64_t at_once = whole.kernel_width > kNarrow ? kernels.max_filters : kernels.max_filters_if_narrow;
  const std::int64_t together = kMaxCorrelatedTaps / taps_;
  filter_parts_ = (filters + at_once - 1) / at_once;
  channel_parts_ = (whole.channels + together - 1) / together;
}

void Correlation::run(std::int64_t part) const {
  const std::int64_t channel = part % channel_parts_ * whole_.channels / channel_parts_;
  const std::int64_t begin = part / channel_parts_ * filters_ / filter_parts_;
  const std::int64_t end = (part / channel_parts_ + 1) * filters_ / filter_parts_;
  CorrelationTask some = whole_;
  some.channels = (part % channel_parts_ + 1) * whole_.channels / channel_parts_ - channel;
  some.input += channel * whole_.input_plane;
  some.gradient += begin * whole_.gradient_plane;
  some.weights_gradient += channel * taps_ * whole_.weight_step + begin;
  some.bias_gradient = whole_.bias_gradient != nullptr && channel == 0 ? whole_.bias_gradient + begin : nullptr;
  kernels_.correlate(end - begin, some);
}

}  // namespace arbalest::engine::cpu
