// Convolutions in plain loops and double precision, for the stand-in of cuDNN.
#pragma once

#include "tests/cuda_stand_in/numbers.h"

namespace arbalest::tests::cuda_stand_in {

struct Extents {
  int n = 0;  // images, or filters of weights
  int c = 0;
  int h = 0;
  int w = 0;
  bool channels_last = false;  // [n, h, w, c] instead of [n, c, h, w]
  Number number = Number::kFloat32;

  bool operator==(const Extents&) const = default;
};

struct Geometry {
  Extents input;
  Extents weights;
  Extents output;
  int padding_height = 0;
  int padding_width = 0;
  int stride_height = 1;
  int stride_width = 1;
  int dilation_height = 1;
  int dilation_width = 1;
  int groups = 1;  // each with weights.c channels of the input
};

// Returns the output's extents. The layout is that of geometry.output.
Extents output_extents(const Geometry& geometry);

// result <- alpha * f(operands) + beta * result.
void convolve(const Geometry& geometry, Scaling scaling, const void* input, const void* weights, void* output);
void convolve_backward_data(const Geometry& geometry, Scaling scaling, const void* weights, const void* output_gradient,
                            void* input_gradient);
void convolve_backward_filter(const Geometry& geometry, Scaling scaling, const void* input, const void* output_gradient,
                              void* weights_gradient);

}  // namespace arbalest::tests::cuda_stand_in
