#include "engine/cpu/lanes/lanes.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "engine/cpu/lanes/convolution_method.h"
#include "engine/cpu/lanes/kernels.h"
#include "engine/cpu/onednn/instruction_sets.h"
#include "engine/cpu/onednn/layout.h"

namespace arbalest::engine::cpu {

namespace {

// Fraction of oneDNN's work on this many channels that is not spent on padding.
double useful_part(std::int64_t channels, std::int64_t block) {
  const std::int64_t padded = (channels + block - 1) / block * block;
  return static_cast<double>(channels) / static_cast<double>(padded);
}

}  // namespace

dnnl::memory::desc lane_descriptor(const Shape& images, DType dtype) {
  return {dims(images), native_type(dtype), dnnl::memory::format_tag::Abcd16a};
}

bool lies_in_lanes(const dnnl::memory::desc& tensor) {
  const dnnl::memory::dims extents = tensor.dims();
  return extents.size() == 4 && extents[0] % kLanes == 0 &&
         tensor == dnnl::memory::desc(extents, tensor.data_type(), dnnl::memory::format_tag::Abcd16a);
}

bool lies_in_lanes(const Layout& tensor) { return lies_in_lanes(descriptor(tensor)); }

namespace {

// Speed relative to oneDNN, measured on a Cascade Lake core, forward and both gradients together: 2.2 if oneDNN pads
// LeNet's 20 and 50 channels, 1.2 if three quarters of its work are useful, 0.7 if all of it is. For kernels of one
// tap, which are products of matrices, it is 0.7. Without AVX-512 oneDNN pads less, but has only products of matrices
// for the gradients of a single channel, and takes 3 to 7 times as long. The same bounds serve bfloat16: LeNet's step
// is 1.8 times as fast as with oneDNN (Zen 4).
bool wins_unpadded(std::int64_t channels, std::int64_t filters) {
  const std::int64_t block = lane_kernels().vector;
  if (channels == 1 && block < kLanes) return true;
  constexpr double kWorthwhile = 0.75;
  constexpr std::int64_t kColors = 3;  // oneDNN does not pad up to this many input channels
  const double of_input = channels <= kColors ? 1.0 : useful_part(channels, block);
  return of_input * useful_part(filters, block) <= kWorthwhile;
}

// Taps that would read padding cost nothing here. Speed relative to oneDNN, measured in bfloat16, forward and both
// gradients together: 1.33, 1.41 and 1.43 for the 3 x 3 convolutions of CIFAR's ResNets with 16, 32 and 64 channels, by
// Winograd's filtering on a Zen 4 core; 1.06 for 5 x 5 kernels and 32 channels, tap by tap on a Zen 5 core. The gain is
// smaller with larger images. Tap by tap it is also smaller with one block of examples, because then a weight is read
// for each product. With one channel half of each product is wasted. In float32 oneDNN is as fast, and with Winograd's
// algorithm faster. The kernels were not compared with oneDNN's AMX kernels.
bool wins_padded(const Conv2dSpec& spec, Precision precision) {
  if (precision != Precision::kBFloat16 || vector_instructions().amx_bf16) return false;
  const Shape& input = spec.input.shape();
  const std::int64_t pixels = input[2] * input[3];
  const std::int64_t most = std::max(input[1], spec.filters);
  constexpr std::int64_t kPixels = 32 * 32;
  constexpr std::int64_t kMost = 64;
  if (input[0] >= 2 * kLanes && pixels <= kPixels && input[1] > 1 && most <= kMost) return true;
  // If nothing has to be copied to this layout: 1.39, 1.29 and 1.25 times as fast with 64, 128 and 256 channels of 32 x
  // 32, 16 x 16 and 8 x 8 pixels, but 0.93 with 512 channels of 4 x 4 (Zen 4).
  constexpr std::int64_t kMostOfWinograd = 256;
  constexpr std::int64_t kFewestPixels = 8 * 8;
  return lies_in_lanes(spec.input) && prefers_winograd(spec, DType::kBFloat16) && most <= kMostOfWinograd &&
         pixels >= kFewestPixels;
}

}  // namespace

bool prefers_lanes(const Conv2dSpec& spec, const PrepareOptions& options) {
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  const bool has_kernels = options.precision == Precision::kFloat32 ||
                           (options.precision == Precision::kBFloat16 && bfloat16_lane_kernels() != nullptr);
  if (!has_kernels || input[0] % kLanes != 0 || spec.groups != 1) return false;
  const std::int64_t taps = window.kernel.height * window.kernel.width;
  if (taps == 1 || taps > kMaxTaps || window.dilation != Extent2d{1, 1}) return false;
  const bool is_padded = window != Window{window.kernel, window.stride};
  return is_padded ? wins_padded(spec, options.precision) : wins_unpadded(input[1], spec.filters);
}

bool keeps_lanes(const Pool2dSpec& spec) {
  const Window& window = spec.window;
  const bool overlaps = window.stride.height < window.kernel.height || window.stride.width < window.kernel.width;
  if (overlaps && spec.input.dtype() == DType::kBFloat16) return false;  // gradients are not summed in bfloat16
  return spec.kind == PoolKind::kMax && lies_in_lanes(spec.input) &&
         window.kernel.height * window.kernel.width <= std::numeric_limits<std::uint8_t>::max();
}

}  // namespace arbalest::engine::cpu
