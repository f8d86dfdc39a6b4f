#include "engine/cpu/lanes.h"
#include "engine/cpu/layout.h"
#include "engine/cpu/linear.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/primitives.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  if (prefers_lanes(spec, options)) return make_lane_conv2d(spec, options, engine);
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  LinearTensors tensors{any_layout(dims(input)),
                        any_layout({spec.filters, input[1], window.kernel.height, window.kernel.width}),
                        {},
                        any_layout(dims(window_output_shape(input, window, spec.filters)))};
  if (spec.bias) tensors.bias = plain_descriptor({spec.filters}, DType::kFloat32);
  return make_linear(spec.input, convolution(engine, options, tensors, window, spec.activation), spec.activation,
                     options, engine);
}

}  // namespace arbalest::engine::cpu
