#include "dataflow/layers/images/padded_shortcut.h"

#include "dataflow/layers/images/image_shape.h"

namespace arbalest::dataflow {

using engine::Shape;

Shape PaddedShortcutLayer::output_shape(std::span<const Shape> inputs) const {
  check_images(inputs[0]);
  if (channels_ < inputs[0][1]) {
    throw LayerError("channels", fmt::format("channels: {} is fewer than the input's {}; a padded shortcut only adds "
                                             "channels",
                                             channels_, inputs[0][1]));
  }
  return engine::padded_shortcut_shape(inputs[0], channels_, stride_);
}

engine::OperatorSpec PaddedShortcutLayer::operator_spec(std::span<const engine::Layout> inputs, std::uint32_t) const {
  return engine::PaddedShortcutSpec{inputs[0], channels_, stride_};
}

}  // namespace arbalest::dataflow
