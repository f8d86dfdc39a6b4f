#include "engine/cpu/lanes/lanes.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
#include "engine/cpu/operators/linear.h"
#include "engine/cpu/operators/operators.h"
#include "engine/cpu/operators/prediction_conv2d.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  if (prefers_transformed_weights(spec, options)) return make_prediction_conv2d(spec, options, engine);
  if (prefers_lanes(spec, options)) return make_lane_conv2d(spec, options, engine);
  const Shape& input = spec.input.shape();
  const Shape weights = weights_shape(spec);
  dnnl::memory::dims weights_dims = dims(weights);
  if (spec.groups > 1) {
    weights_dims[0] /= spec.groups;
    weights_dims.insert(weights_dims.begin(), spec.groups);
  }
  const DType type = linear_type(options.precision);
  LinearTensors tensors{any_layout(dims(input), type),
                        any_layout(weights_dims, type),
                        {},
                        any_layout(dims(window_output_shape(input, spec.window, spec.filters)), type)};
  if (spec.bias) tensors.bias = plain_descriptor({spec.filters}, DType::kFloat32);
  return make_linear(spec.input, weights, convolution(engine, options, tensors, spec.window, spec.activation),
                     spec.activation, options, engine);
}

}  // namespace arbalest::engine::cpu
