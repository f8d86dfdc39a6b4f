#include "engine/cpu/layout.h"
#include "engine/cpu/linear.h"
#include "engine/cpu/operators.h"
#include "engine/cpu/primitives.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const Conv2dSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  const Window& window = spec.window;
  ARBALEST_CHECK(input.rank() == 4 && spec.filters > 0);
  const std::int64_t height =
      window_positions(input[2], window.kernel.height, window.stride.height, window.padding.height);
  const std::int64_t width = window_positions(input[3], window.kernel.width, window.stride.width, window.padding.width);
  ARBALEST_CHECK(height > 0 && width > 0);

  LinearTensors tensors{any_layout(dims(input)),
                        any_layout({spec.filters, input[1], window.kernel.height, window.kernel.width}),
                        {},
                        any_layout({input[0], spec.filters, height, width})};
  if (spec.bias) tensors.bias = plain_descriptor({spec.filters}, DType::kFloat32);
  return make_linear(spec.input, convolution(engine, options, tensors, window), options, engine);
}

}  // namespace arbalest::engine::cpu
