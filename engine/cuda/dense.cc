// A dense layer as matrix products. Images are multiplied in the order they lie in, by weights that lie alike.
#include <algorithm>

#include "engine/alignment.h"
#include "engine/cuda/bias.h"
#include "engine/cuda/check.h"
#include "engine/cuda/descriptors.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/linear.h"
#include "engine/cuda/operators.h"
#include "engine/cuda/transpose.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

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

class Dense final : public LinearOperator {
 public:
  Dense(const DenseSpec& spec, const PrepareOptions& options);

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override;
  void run_backward(const LinearBackward& of, const StreamContext& context) const override;

  bool copies() const { return read_order_ != input_order_; }
  Rows output_rows() const { return {batch_, units_}; }
  std::size_t images_bytes() const { return aligned(sizeof(float) * static_cast<std::size_t>(images_.elements())); }

  const int batch_;
  const int features_;
  const int units_;
  Shape images_;  // the input's, where it or the weights lie with channels last
  Order input_order_ = Order::kCanonical;
  Order read_order_ = Order::kCanonical;  // the weights'; the input is copied where it lies otherwise
  // Scratch: the input or its gradient in read_order_, if needed; then the bias gradient's partial sums.
  std::size_t partials_at_ = 0;
};

Dense::Dense(const DenseSpec& spec, const PrepareOptions& options)
    : LinearOperator(options, spec.bias, spec.activation),
      batch_(to_int(spec.input.shape()[0])),
      features_(to_int(spec.input.shape().elements_per_example())),
      units_(to_int(spec.units)),
      input_order_(order_of(spec.input)) {
  const Shape& input = spec.input.shape();
  traits_.output = make_layout({input[0], spec.units}, DType::kFloat32, Order::kCanonical);
  const Layout own = input_order_ == Order::kChannelsLast
                         ? make_layout(input.with_batch(spec.units), DType::kFloat32, input_order_)
                         : make_layout({spec.units, features_}, DType::kFloat32, Order::kCanonical);
  set_parameters(options, own, spec.units);
  const Layout& weights = traits_.parameters[0];
  read_order_ = order_of(weights);
  images_ = input_order_ == Order::kChannelsLast ? input : weights.shape().with_batch(input[0]);

  if (copies() && training_) traits_.saved_bytes = images_bytes();
  traits_.backward_reads_inputs = training_ && !copies();
  if (copies() && (!training_ || input_gradient_)) partials_at_ = images_bytes();
  traits_.scratch_bytes = partials_at_;
  if (training_ && bias_) traits_.scratch_bytes += aligned(column_sum_bytes(output_rows()));
}

void Dense::run_forward(const LinearForward& of, const StreamContext& context) const {
  const float* read = of.input;
  if (copies()) {
    auto* copy = training_ ? of.saved : reinterpret_cast<float*>(of.scratch);
    transpose(of.input, copy, images_, input_order_, read_order_, context.stream);
    read = copy;
  }
  multiply(context.cublas, {read, features_}, {of.weights, features_, true}, of.output, batch_, units_, features_);
  finish_output(of.output, of.bias, activation_, output_rows(), context.stream);
}

void Dense::run_backward(const LinearBackward& of, const StreamContext& context) const {
  begin_gradient(of.output_gradient, of.output, activation_, of.bias_gradient, output_rows(),
                 reinterpret_cast<float*>(of.scratch + partials_at_), context.stream);
  multiply(context.cublas, {of.output_gradient, units_, true}, {of.read, features_}, of.weights_gradient, units_,
           features_, batch_);
  if (of.input_gradient == nullptr) return;
  auto* produced = copies() ? reinterpret_cast<float*>(of.scratch) : of.input_gradient;
  multiply(context.cublas, {of.output_gradient, units_}, {of.weights, features_}, produced, batch_, features_, units_);
  if (copies()) transpose(produced, of.input_gradient, images_, read_order_, input_order_, context.stream);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.input.shape().rank() >= 2 && spec.units > 0);
  return std::make_unique<Dense>(spec, options);
}

}  // namespace arbalest::engine::cuda
