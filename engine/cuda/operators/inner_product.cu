#include <type_traits>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

struct Extents {
  std::int64_t examples;
  std::int64_t features;
};

// Below, `A` and `B` are the types of the inputs and their gradients, `T` the output's type. Sums are float32.

// `bias` may be null.
template <typename A, typename B, typename T>
__device__ void multiply_rows(const A* a, const B* b, const float* bias, T* output, Extents of) {
  __shared__ float sums[kBlockRows][kRowLanes];
  for_rows(of.examples, [&](const RowPlace& at) {
    const auto [n, slot, lane] = at;
    const std::int64_t features = n < of.examples ? of.features : 0;
    float sum = 0.0F;
    for (std::int64_t f = lane; f < features; f += kRowLanes) {
      sum += load(a[n * of.features + f]) * load(b[n * of.features + f]);
    }
    sums[slot][lane] = sum;
    __syncthreads();
    if (lane == 0 && n < of.examples) store(sum_of_lanes(sums[slot]) + (bias == nullptr ? 0.0F : *bias), output[n]);
  });
}

// Each gradient is the other input times the output's gradient. Gradients that are not wanted are null.
template <typename A, typename B, typename T>
__device__ void multiply_gradient(const A* a, const B* b, const T* arriving, A* a_gradient, B* b_gradient, Extents of) {
  for (std::int64_t i = first_element(); i < of.examples * of.features; i += element_step()) {
    const float gradient = load(arriving[i / of.features]);
    if (a_gradient != nullptr) store(gradient * load(b[i]), a_gradient[i]);
    if (b_gradient != nullptr) store(gradient * load(a[i]), b_gradient[i]);
  }
}

// Launched with one block, so that the order of additions is fixed.
template <typename T>
__device__ void sum_gradient(const T* arriving, std::int64_t examples, float* bias_gradient) {
  double sum = 0.0;
  for (std::int64_t n = threadIdx.x; n < examples; n += kThreads) sum += static_cast<double>(load(arriving[n]));
  sum = block_sum(sum);
  if (threadIdx.x == 0) *bias_gradient = static_cast<float>(sum);
}

template <typename A, typename B>
class InnerProduct final : public Operator {
  using T = std::conditional_t<std::is_same_v<A, float>, B, A>;

 public:
  explicit InnerProduct(const InnerProductSpec& spec)
      : of_{spec.a.shape()[0], spec.a.shape()[1]}, has_bias_(spec.bias) {
    const DType dtype = std::is_same_v<T, float> ? DType::kFloat32 : DType::kBFloat16;
    traits_.output = make_layout({of_.examples, 1}, dtype, Order::kCanonical);
    if (has_bias_) traits_.parameters = {make_layout({1}, DType::kFloat32, Order::kCanonical)};
    traits_.backward_reads_inputs = true;
  }

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override {
    const auto* a = static_cast<const A*>(operands.inputs[0]);
    const auto* b = static_cast<const B*>(operands.inputs[1]);
    const auto* bias = has_bias_ ? static_cast<const float*>(operands.parameters[0]) : nullptr;
    auto* output = static_cast<T*>(operands.output);
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      launch<multiply_rows<A, B, T>>(blocks_of_rows(of_.examples), context.stream, a, b, bias, output, of_);
    });
  }

  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override {
    const auto* a = static_cast<const A*>(operands.inputs[0]);
    const auto* b = static_cast<const B*>(operands.inputs[1]);
    const auto* arriving = static_cast<const T*>(operands.output_gradient);
    auto* a_gradient = static_cast<A*>(operands.input_gradients[0]);
    auto* b_gradient = static_cast<B*>(operands.input_gradients[1]);
    auto* bias_gradient = has_bias_ ? static_cast<float*>(operands.parameter_gradients[0]) : nullptr;
    as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
      launch<multiply_gradient<A, B, T>>(blocks_for(of_.examples * of_.features), context.stream, a, b, arriving,
                                         a_gradient, b_gradient, of_);
      if (bias_gradient != nullptr) launch<sum_gradient<T>>(1, context.stream, arriving, of_.examples, bias_gradient);
    });
  }

 private:
  const Extents of_;
  const bool has_bias_;
};

template <typename A>
std::unique_ptr<Operator> make_with(const InnerProductSpec& spec) {
  if (is_bfloat16(spec.b)) return std::make_unique<InnerProduct<A, BFloat16>>(spec);
  return std::make_unique<InnerProduct<A, float>>(spec);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const InnerProductSpec& spec, const PrepareOptions& /*options*/) {
  ARBALEST_CHECK(spec.a.shape().rank() == 2 && spec.a.shape() == spec.b.shape());
  return is_bfloat16(spec.a) ? make_with<BFloat16>(spec) : make_with<float>(spec);
}

}  // namespace arbalest::engine::cuda
