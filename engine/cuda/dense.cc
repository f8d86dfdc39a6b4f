// A dense layer as matrix products. Images are multiplied in the order they lie in, by weights that lie alike.
#include <algorithm>

#include "engine/cuda/bias.h"
#include "engine/cuda/check.h"
#include "engine/cuda/descriptors.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"
#include "engine/cuda/stream.h"
#include "engine/cuda/transpose.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// A row-major matrix [rows, columns] or, transposed, the one it is the transpose of.
struct Matrix {
  const float* data = nullptr;
  int columns = 0;
  bool transposed = false;
};

// product[rows, columns] = a[rows, inner] * b[inner, columns], in float32 without TF32. cuBLAS is column-major: it sees
// each matrix transposed, so it is given b and a.
void multiply(cublasHandle_t cublas, const Matrix& a, const Matrix& b, float* product, int rows, int columns,
              int inner) {
  constexpr float kOne = 1.0F;
  constexpr float kZero = 0.0F;
  const auto operation = [](const Matrix& of) { return of.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  ARBALEST_CUDA(cublasGemmEx(cublas, operation(b), operation(a), columns, rows, inner, &kOne, b.data, CUDA_R_32F,
                             b.columns, a.data, CUDA_R_32F, a.columns, &kZero, product, CUDA_R_32F, columns,
                             CUBLAS_COMPUTE_32F_PEDANTIC, CUBLAS_GEMM_DEFAULT));
}

class Dense final : public Operator {
 public:
  Dense(const DenseSpec& spec, const PrepareOptions& options);

  void forward(Stream& stream, const char* label, const ForwardOperands& operands) const override;
  void backward(Stream& stream, const char* label, const BackwardOperands& operands) const override;

 private:
  bool copies() const { return read_order_ != input_order_; }
  std::size_t images_bytes() const { return aligned(sizeof(float) * static_cast<std::size_t>(images_.elements())); }

  const bool training_;
  const bool input_gradient_;
  const bool bias_;
  const int batch_;
  const int features_;
  const int units_;
  Shape images_;  // the input's, where it or the weights lie with channels last
  Order input_order_ = Order::kCanonical;
  Order read_order_ = Order::kCanonical;  // the weights'; the input is copied where it lies otherwise
  // Scratch: the input or its gradient in read_order_, if needed; then column_sum's partial sums.
  std::size_t partials_at_ = 0;
};

Dense::Dense(const DenseSpec& spec, const PrepareOptions& options)
    : training_(options.mode == OperatorMode::kTraining),
      input_gradient_(options.input_gradient),
      bias_(spec.bias),
      batch_(to_int(spec.input.shape()[0])),
      features_(to_int(spec.input.shape().elements_per_example())),
      units_(to_int(spec.units)),
      input_order_(order_of(spec.input)) {
  const Shape& input = spec.input.shape();
  traits_.output = make_layout({input[0], spec.units}, DType::kFloat32, Order::kCanonical);
  traits_.parameters = options.parameters;
  if (traits_.parameters.empty()) {
    traits_.parameters.push_back(input_order_ == Order::kChannelsLast
                                     ? make_layout(input.with_batch(spec.units), DType::kFloat32, input_order_)
                                     : make_layout({spec.units, features_}, DType::kFloat32, Order::kCanonical));
    if (bias_) traits_.parameters.push_back(make_layout({spec.units}, DType::kFloat32, Order::kCanonical));
  }
  ARBALEST_CHECK(traits_.parameters.size() == (bias_ ? 2U : 1U));
  const Layout& weights = traits_.parameters[0];
  ARBALEST_CHECK(weights.shape().elements() == spec.units * features_);
  read_order_ = order_of(weights);
  images_ = input_order_ == Order::kChannelsLast ? input : weights.shape().with_batch(input[0]);

  if (copies() && training_) traits_.saved_bytes = images_bytes();
  traits_.backward_reads_inputs = training_ && !copies();
  if (copies() && (!training_ || input_gradient_)) partials_at_ = images_bytes();
  traits_.scratch_bytes = partials_at_;
  if (training_ && bias_) traits_.scratch_bytes += aligned(column_sum_bytes(batch_, units_));
}

void Dense::forward(Stream& stream, const char* label, const ForwardOperands& operands) const {
  const auto* input = static_cast<const float*>(operands.inputs[0]);
  const auto* weights = static_cast<const float*>(operands.parameters[0]);
  const auto* bias = bias_ ? static_cast<const float*>(operands.parameters[1]) : nullptr;
  auto* output = static_cast<float*>(operands.output);
  auto* copy = static_cast<float*>(training_ ? operands.saved : operands.scratch);
  as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
    const float* read = input;
    if (copies()) {
      transpose(input, copy, images_, input_order_, read_order_, context.stream);
      read = copy;
    }
    multiply(context.cublas, {read, features_}, {weights, features_, true}, output, batch_, units_, features_);
    if (bias != nullptr) add_bias(output, bias, batch_, units_, context.stream);
  });
}

void Dense::backward(Stream& stream, const char* label, const BackwardOperands& operands) const {
  ARBALEST_CHECK(training_);
  const auto* read = static_cast<const float*>(copies() ? operands.saved : operands.inputs[0]);
  const auto* weights = static_cast<const float*>(operands.parameters[0]);
  const auto* gradient = static_cast<const float*>(operands.output_gradient);
  auto* weights_gradient = static_cast<float*>(operands.parameter_gradients[0]);
  auto* bias_gradient = bias_ ? static_cast<float*>(operands.parameter_gradients[1]) : nullptr;
  auto* input_gradient = input_gradient_ ? static_cast<float*>(operands.input_gradients[0]) : nullptr;
  auto* scratch = static_cast<std::byte*>(operands.scratch);
  as_cuda(stream).submit(label, [=, this](const StreamContext& context) {
    multiply(context.cublas, {gradient, units_, true}, {read, features_}, weights_gradient, units_, features_, batch_);
    if (bias_gradient != nullptr) {
      auto* partials = reinterpret_cast<float*>(scratch + partials_at_);
      column_sum(gradient, bias_gradient, batch_, units_, partials, context.stream);
    }
    if (input_gradient == nullptr) return;
    auto* produced = copies() ? reinterpret_cast<float*>(scratch) : input_gradient;
    multiply(context.cublas, {gradient, units_}, {weights, features_}, produced, batch_, features_, units_);
    if (copies()) transpose(produced, input_gradient, images_, read_order_, input_order_, context.stream);
  });
}

}  // namespace

std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.input.shape().rank() >= 2 && spec.units > 0);
  return std::make_unique<Dense>(spec, options);
}

}  // namespace arbalest::engine::cuda
