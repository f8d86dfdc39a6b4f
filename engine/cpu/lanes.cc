#include "engine/cpu/lanes.h"

#include <cstdint>
#include <limits>

#include "engine/cpu/lane_kernels.h"
#include "engine/cpu/layout.h"

namespace arbalest::engine::cpu {

namespace {

// What part of oneDNN's work on so many channels is not on padding.
double useful_part(std::int64_t channels, std::int64_t block) {
  const std::int64_t padded = (channels + block - 1) / block * block;
  return static_cast<double>(channels) / static_cast<double>(padded);
}

}  // namespace

dnnl::memory::desc lane_descriptor(const Shape& images, DType dtype) {
  return {dims(images), native_type(dtype), dnnl::memory::format_tag::Abcd16a};
}

bool lies_in_lanes(const Layout& tensor) {
  const Shape& shape = tensor.shape();
  return shape.rank() == 4 && shape[0] % kLanes == 0 && descriptor(tensor) == lane_descriptor(shape, tensor.dtype());
}

// Measured on a Cascade Lake core, forward and both gradients together: 2.2 times as fast as oneDNN where it pads
// LeNet's 20 and 50 channels, 1.2 where three quarters of its work are of use, 0.7 where all of it is, and 0.7 for
// kernels of one tap, which are products of matrices. Without AVX-512 oneDNN pads less, but has only products of
// matrices for the gradients of a single channel, and takes 3 to 7 times as long. The same bounds serve bfloat16:
// LeNet's step is 1.8 times as fast as by oneDNN (Zen 4).
bool prefers_lanes(const Conv2dSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  const bool has_kernels = options.precision == Precision::kFloat32 ||
                           (options.precision == Precision::kBFloat16 && bfloat16_lane_kernels() != nullptr);
  if (!has_kernels || input[0] % kLanes != 0 || spec.groups != 1) return false;
  if (window != Window{window.kernel, window.stride}) return false;  // it is padded, say
  const std::int64_t taps = window.kernel.height * window.kernel.width;
  if (taps == 1 || taps > kMaxTaps) return false;
  const std::int64_t channels = input[1];
  const std::int64_t block = lane_kernels().vector;
  if (channels == 1 && block < kLanes) return true;
  constexpr double kWorthwhile = 0.75;
  constexpr std::int64_t kColors = 3;  // oneDNN does not pad up to so many channels of its input
  const double of_input = channels <= kColors ? 1.0 : useful_part(channels, block);
  return of_input * useful_part(spec.filters, block) <= kWorthwhile;
}

bool keeps_lanes(const Pool2dSpec& spec) {
  const Window& window = spec.window;
  const bool overlaps = window.stride.height < window.kernel.height || window.stride.width < window.kernel.width;
  if (overlaps && spec.input.dtype() == DType::kBFloat16) return false;  // gradients are not summed in bfloat16
  return spec.kind == PoolKind::kMax && lies_in_lanes(spec.input) &&
         window.kernel.height * window.kernel.width <= std::numeric_limits<std::uint8_t>::max();
}

}  // namespace arbalest::engine::cpu
