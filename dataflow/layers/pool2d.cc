#include "dataflow/layers/pool2d.h"

#include "dataflow/layers/image_shape.h"

namespace arbalest::dataflow {

using engine::Shape;

std::string_view Pool2dLayer::kind() const {
  return options_.kind == engine::PoolKind::kMax ? "max_pool" : "average_pool";
}

Shape Pool2dLayer::output_shape(std::span<const Shape> inputs) const {
  const engine::Window& window = options_.window;
  if (window.padding.height >= window.kernel.height || window.padding.width >= window.kernel.width) {
    throw LayerError("padding", "padding must be smaller than the kernel, or windows lie in nothing");
  }
  const engine::Extent2d extent = window_output(inputs[0], window);
  return {inputs[0][0], inputs[0][1], extent.height, extent.width};
}

std::int64_t Pool2dLayer::forward_flops(std::span<const Shape> inputs) const {
  return output_shape(inputs).elements() * options_.window.kernel.height * options_.window.kernel.width;
}

engine::OperatorSpec Pool2dLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::Pool2dSpec{inputs[0], options_.kind, options_.window};
}

}  // namespace arbalest::dataflow
