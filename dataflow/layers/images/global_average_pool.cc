#include "dataflow/layers/images/global_average_pool.h"

#include "dataflow/layers/images/image_shape.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape GlobalAveragePoolLayer::output_shape(std::span<const Shape> inputs) const {
  check_images(inputs[0]);
  return {inputs[0][0], inputs[0][1], 1, 1};
}

// Average pooling with a window as large as the image.
engine::OperatorSpec GlobalAveragePoolLayer::operator_spec(std::span<const engine::Layout> inputs,
                                                           std::uint32_t) const {
  engine::Window window;
  window.kernel = {inputs[0].shape()[2], inputs[0].shape()[3]};
  return engine::Pool2dSpec{inputs[0], engine::PoolKind::kAverage, window};
}

}  // namespace arbalest::dataflow
