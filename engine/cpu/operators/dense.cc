// For blocked images [n, c, h, w], oneDNN's kernels are slower than a copy to canonical order followed by the kernels
// for [n, features] (LeNet's 50x4x4 -> 500, batch 32: 471 us against 12 + 331 us forward). So this layer always uses
// [n, features].
#include "engine/base/error.h"
#include "engine/cpu/onednn/layout.h"
#include "engine/cpu/onednn/primitives.h"
#include "engine/cpu/operators/linear.h"
#include "engine/cpu/operators/operators.h"

namespace arbalest::engine::cpu {

std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options,
                                        const dnnl::engine& engine) {
  const Shape& input = spec.input.shape();
  ARBALEST_CHECK(input.rank() >= 2 && spec.units > 0);
  const std::int64_t batch = input[0];
  const std::int64_t features = input.elements_per_example();
  const DType type = linear_type(options.precision);
  LinearTensors tensors{plain_descriptor({batch, features}, type),
                        any_layout({spec.units, features}, type),
                        {},
                        plain_descriptor({batch, spec.units}, type)};
  if (spec.bias) tensors.bias = plain_descriptor({spec.units}, DType::kFloat32);
  return make_linear(spec.input, {spec.units, features}, inner_product(engine, options, tensors, spec.activation),
                     spec.activation, options, engine);
}

}  // namespace arbalest::engine::cpu
