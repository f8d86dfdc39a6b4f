// Convolutions in plain loops and double precision, for cuDNN's stand-in.
#pragma once

namespace arbalest::tests::cuda_stand_in {

struct Extents {
  int n = 0;  // of weights: filters
  int c = 0;
  int h = 0;
  int w = 0;
  bool channels_last = false;  // [n, h, w, c] instead of [n, c, h, w]

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
};

// The output that cross-correlation gives; of the layout of geometry.output.
Extents output_extents(const Geometry& geometry);

// result <- alpha * f(operands) + beta * result; what beta = 0 multiplies is not read.
struct Scaling {
  float alpha = 1;
  float beta = 0;
};
void convolve(const Geometry& geometry, Scaling scaling, const float* input, const float* weights, float* output);
void convolve_backward_data(const Geometry& geometry, Scaling scaling, const float* weights,
                            const float* output_gradient, float* input_gradient);
void convolve_backward_filter(const Geometry& geometry, Scaling scaling, const float* input,
                              const float* output_gradient, float* weights_gradient);

}  // namespace arbalest::tests::cuda_stand_in
