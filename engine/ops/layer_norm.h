// Layer normalization (Ba, Kiros and Hinton, 2016) of each example over all of its F features:
//   y = scale (x - m) / sqrt(v + epsilon) + shift
// m and v are the mean and the (biased, / F) variance of the example's numbers, in training and at inference. As
// torch.nn.LayerNorm whose normalized_shape is the shape of an example. With g = dy scale and z = (x - m) / sqrt(v +
// epsilon), the gradient of the input is dx = (g - mean of g - z mean of (g z)) / sqrt(v + epsilon).
//
// Parameters: scale and shift, of the shape of an example; none if the operator is not affine. Statistics are float32.
// They are sums of distances from the example's first number, so that they stay precise far from zero.
#pragma once

#include "engine/base/layout.h"

namespace arbalest::engine {

struct LayerNormSpec {
  Layout input;           // [n, c] or [n, c, h, w], float32 or bfloat16, like the output
  float epsilon = 1e-5F;  // above 0
  bool affine = true;     // has scale and shift
};

// The shape of one example of `input`, which is that of the parameters: [c] or [c, h, w].
inline Shape example_shape(const Shape& input) {
  Shape example;
  for (int axis = 1; axis < input.rank(); ++axis) example.append(input[axis]);
  return example;
}

}  // namespace arbalest::engine
