#include "dataflow/layers/layer.h"

#include "engine/base/error.h"

namespace arbalest::dataflow {

// One operation per element, unless the layer overrides this.
std::int64_t Layer::forward_flops(std::span<const engine::Shape> inputs) const { return inputs[0].elements(); }

engine::Shape shape_of_images_or_features(const engine::Shape& input) {
  if (input.rank() != 2 && input.rank() != 4) {
    engine::fail(engine::ErrorKind::kInvalidJob,
                 "needs images [channels, height, width] or a vector of features as input, not one number per example");
  }
  return input;
}

}  // namespace arbalest::dataflow
