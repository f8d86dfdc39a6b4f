// Joins tensors along axis 1: channels of images [n, c, h, w], or features [n, f]. The order is that of the inputs.
#pragma once

#include <vector>

#include "engine/base/layout.h"

namespace arbalest::engine {

struct ConcatSpec {
  // Equal shapes except for axis 1; float32 or bfloat16. The output is bfloat16 if one of them is.
  std::vector<Layout> inputs;
};

// Shape of the output.
inline Shape concat_shape(const ConcatSpec& spec) {
  Shape shape;
  for (int axis = 0; axis < spec.inputs[0].shape().rank(); ++axis) {
    std::int64_t extent = 0;
    for (const Layout& input : spec.inputs) extent += axis == 1 ? input.shape()[axis] : 0;
    shape.append(axis == 1 ? extent : spec.inputs[0].shape()[axis]);
  }
  return shape;
}

}  // namespace arbalest::engine
