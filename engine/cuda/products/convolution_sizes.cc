#include "engine/cuda/products/convolution_sizes.h"

#include <algorithm>
#include <limits>

#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"

namespace arbalest::engine::cuda {

namespace {

bool is_small(const Layout& tensor) { return tensor.shape().elements() <= std::numeric_limits<std::int32_t>::max(); }

// [n, c, h, w]
ImageSteps steps_of(const Layout& images) {
  const Shape& shape = images.shape();
  const auto channels = static_cast<int>(shape[1]);
  const auto pixels = static_cast<int>(shape[2] * shape[3]);
  if (order_of(images) == Order::kChannelsLast) return {channels * pixels, 1, channels};
  return {channels * pixels, pixels, 1};
}

Side side_of(std::int64_t input, std::int64_t output, std::int64_t kernel, std::int64_t stride, std::int64_t padding,
             std::int64_t dilation) {
  // With a single position, the stride may be larger than any coordinate; with a single tap, so may the dilation.
  if (output == 1) stride = 1;
  if (kernel == 1) dilation = 1;
  return {static_cast<int>(input),  static_cast<int>(output),  static_cast<int>(kernel),
          static_cast<int>(stride), static_cast<int>(padding), static_cast<int>(dilation)};
}

}  // namespace

std::optional<ConvolutionSizes> convolution_sizes(const Layout& input, const Layout& weights, const Layout& output,
                                                  const Window& window) {
  if (!is_small(input) || !is_small(weights) || !is_small(output)) return std::nullopt;
  const Shape& in = input.shape();
  const Shape& out = output.shape();
  ARBALEST_CHECK(in.rank() == 4 && weights.shape().rank() == 4 && out.rank() == 4 && weights.shape()[1] == in[1]);
  const ImageSteps of_weights = steps_of(weights);
  return ConvolutionSizes{.images = static_cast<int>(in[0]),
                          .channels = static_cast<int>(in[1]),
                          .filters = static_cast<int>(out[1]),
                          .rows = side_of(in[2], out[2], window.kernel.height, window.stride.height,
                                          window.padding.height, window.dilation.height),
                          .columns = side_of(in[3], out[3], window.kernel.width, window.stride.width,
                                             window.padding.width, window.dilation.width),
                          .input = steps_of(input),
                          .output = steps_of(output),
                          .weights = {of_weights.image, of_weights.channel, of_weights.pixel}};
}

std::optional<ConvolutionSizes> dense_sizes(const Layout& input, const Layout& weights, std::int64_t units) {
  const Shape& in = input.shape();
  if (!is_small(input) || !is_small(weights) || in[0] * units > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  const auto features = static_cast<int>(in.elements_per_example());
  const auto examples = static_cast<int>(in[0]);
  return ConvolutionSizes{.images = 1,
                          .channels = features,
                          .filters = static_cast<int>(units),
                          .rows = {},
                          .columns = {.input = examples, .output = examples},
                          .input = {0, 1, features},
                          .output = {0, 1, static_cast<int>(units)},
                          .weights = {features, 1, 1}};
}

}  // namespace arbalest::engine::cuda
