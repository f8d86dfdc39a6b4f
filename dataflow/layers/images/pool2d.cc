#include "dataflow/layers/images/pool2d.h"

namespace arbalest::dataflow {

using engine::Shape;

namespace {

// How far the last window reaches beyond the padded image if windows may begin anywhere on the image or its leading
// padding (PyTorch's rule). `padding`: on each side.
std::int64_t overhang(std::int64_t input, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  const std::int64_t rest = input + 2 * padding - kernel;
  if (rest <= -stride) return 0;  // no window fits
  // `begin` is the first pixel of the last window, counted on the padded image.
  const std::int64_t begin = (rest + stride - 1) / stride * stride;
  return begin > rest && begin < input + padding ? begin - rest : 0;
}

}  // namespace

std::string_view Pool2dLayer::kind() const {
  return options_.kind == engine::PoolKind::kMax ? "max_pool" : "average_pool";
}

engine::Window Pool2dLayer::place(const Shape& input) const {
  const engine::Extent2d& kernel = options_.window.kernel;
  const engine::Extent2d after = engine::padding_after(options_.window);
  if (options_.window.padding.height >= kernel.height || options_.window.padding.width >= kernel.width) {
    throw LayerError("padding", "padding must be smaller than the kernel, or some windows cover only padding");
  }
  if (after.height >= kernel.height || after.width >= kernel.width) {
    throw LayerError("extra_padding",
                     "the sum of padding and extra_padding must be smaller than the kernel, or some windows cover only "
                     "padding");
  }
  engine::Window window = options_.window;
  if (options_.ceil_mode && input.rank() == 4) {
    window.extra_padding = {overhang(input[2], window.kernel.height, window.stride.height, window.padding.height),
                            overhang(input[3], window.kernel.width, window.stride.width, window.padding.width)};
  }
  return place_window(input, window, options_.padding_mode);
}

Shape Pool2dLayer::output_shape(std::span<const Shape> inputs) const {
  const engine::Window window = place(inputs[0]);
  if (options_.ceil_mode && options_.count_padding && window.padding != engine::Extent2d{0, 0} &&
      window.extra_padding != engine::Extent2d{0, 0}) {
    throw LayerError(
        "count_padding",
        "with ceil_mode the last window extends past the padding, where count_padding has nothing to count; leave "
        "out count_padding or ceil_mode, or choose a kernel that fits");
  }
  return engine::window_output_shape(inputs[0], window, inputs[0][1]);
}

std::int64_t Pool2dLayer::forward_flops(std::span<const Shape> inputs) const {
  return output_shape(inputs).elements() * options_.window.kernel.height * options_.window.kernel.width;
}

engine::OperatorSpec Pool2dLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  const engine::Window window = place(inputs[0].shape());
  // The overhang beyond an image without padding is never counted.
  const engine::Extent2d none{0, 0};
  const bool has_padding = options_.padding_mode == PaddingMode::kSame || options_.window.padding != none ||
                           engine::padding_after(options_.window) != none;
  return engine::Pool2dSpec{inputs[0], options_.kind, window, options_.count_padding && has_padding};
}

}  // namespace arbalest::dataflow
