#include "dataflow/layers/layer.h"

namespace arbalest::dataflow {

// One operation per element, unless the layer overrides this.
std::int64_t Layer::forward_flops(std::span<const engine::Shape> inputs) const { return inputs[0].elements(); }

}  // namespace arbalest::dataflow
