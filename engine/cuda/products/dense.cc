// A dense layer as matrix products. Images are multiplied in their memory order, by weights in the same order.
#include <algorithm>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/descriptors.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/transpose.h"
#include "engine/cuda/operators/bias.h"
#include "engine/cuda/operators/linear.h"
#include "engine/cuda/operators/operators.h"
#include "engine/cuda/products/product_choice.h"
#include "engine/cuda/runtime/check.h"

namespace arbalest::engine::cuda {

namespace {

// A row-major matrix in memory with `columns` columns. If `transposed`, products use its transpose.
struct Matrix {
  const void* data = nullptr;
  int columns = 0;
  bool transposed = false;
};

// Type of the factors, and type of the arithmetic.
struct Arithmetic {
  cudaDataType type;
  cublasComputeType_t compute;
};

Arithmetic arithmetic_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat32: return {CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC};
    case Precision::kTensorFloat32: return {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32};
    case Precision::kBFloat16: break;
  }
  return {CUDA_R_16BF, CUBLAS_COMPUTE_32F};
}

// product[rows, columns] = a[rows, inner] * b[inner, columns]. cuBLAS is column-major and sees each matrix transposed,
// so the call passes b first and then a.
// One call for each replica, so that each gets the bits that it gets alone.
void multiply(const StreamContext& context, const Arithmetic& in, const Matrix& a, const Matrix& b, void* product,
              cudaDataType product_type, int rows, int columns, int inner) {
  constexpr float kOne = 1.0F;
  constexpr float kZero = 0.0F;
  const auto operation = [](const Matrix& of) { return of.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  for_each_replica(context.stream, [&](const auto& place) {
    ARBALEST_CUDA(cublasGemmEx(context.cublas, operation(b), operation(a), columns, rows, inner, &kOne, place(b.data),
                               in.type, b.columns, place(a.data), in.type, a.columns, &kZero, place(product),
                               product_type, columns, in.compute, CUBLAS_GEMM_DEFAULT));
  });
}

class Dense final : public LinearOperator {
 public:
  Dense(const DenseSpec& spec, const PrepareOptions& options);

 private:
  void run_forward(const LinearForward& of, const StreamContext& context) const override;
  void run_backward(const LinearBackward& of, const StreamContext& context) const override;

  Rows output_rows() const { return {batch_, units_, type_}; }
  bool copies() const { return input_as_read_ != input_as_it_lies_; }
  std::size_t images_bytes() const { return aligned(size_of(type_) * static_cast<std::size_t>(images_.elements())); }

  const Arithmetic arithmetic_;
  const int batch_;
  const int features_;
  const int units_;
  Shape images_;  // the input's shape, if the input or the weights have channels last
  const Arrangement input_as_it_lies_;
  Arrangement input_as_read_;  // has the weights' order; an input in another order is copied
  // Scratch: the input or its gradient as read, if needed; then the bias gradient's partial sums.
  std::size_t partials_at_ = 0;
};

Dense::Dense(const DenseSpec& spec, const PrepareOptions& options)
    : LinearOperator(options, spec.bias, spec.activation, Kernels::kLibraries),
      arithmetic_(arithmetic_of(options.precision)),
      batch_(to_int(spec.input.shape()[0])),
      features_(to_int(spec.input.shape().elements_per_example())),
      units_(to_int(spec.units)),
      input_as_it_lies_(arrangement_of(spec.input)) {
  const Shape& input = spec.input.shape();
  traits_.output = make_layout({input[0], spec.units}, type_, Order::kCanonical);
  const bool reads_images = input_as_it_lies_.order == Order::kChannelsLast;
  const Layout own = reads_images ? make_layout(input.with_batch(spec.units), DType::kFloat32, Order::kChannelsLast)
                                  : make_layout({spec.units, features_}, DType::kFloat32, Order::kCanonical);
  set_parameters(options, own, spec.units);
  const Layout& weights = traits_.parameters[0];
  input_as_read_ = {type_, order_of(weights)};
  images_ = reads_images ? input : weights.shape().with_batch(input[0]);

  if (copies() && training_) traits_.saved_bytes = images_bytes();
  traits_.backward_reads_inputs = training_ && !copies();
  if (copies() && (!training_ || input_gradient_)) partials_at_ = images_bytes();
  traits_.scratch_bytes = partials_at_;
  if (training_ && bias_) traits_.scratch_bytes += aligned(column_sum_bytes(output_rows()));
}

void Dense::run_forward(const LinearForward& of, const StreamContext& context) const {
  const void* read = of.input;
  if (copies()) {
    void* copy = training_ ? of.saved : of.scratch;
    transpose(of.input, input_as_it_lies_, copy, input_as_read_, images_, context.stream);
    read = copy;
  }
  multiply(context, arithmetic_, {read, features_}, {of.weights, features_, true}, of.output, arithmetic_.type, batch_,
           units_, features_);
  finish_output(of.output, of.bias, activation_, output_rows(), context.stream);
}

void Dense::run_backward(const LinearBackward& of, const StreamContext& context) const {
  begin_gradient(of.output_gradient, of.output, activation_, of.bias_gradient, output_rows(),
                 reinterpret_cast<float*>(of.scratch + partials_at_), context.stream);
  multiply(context, arithmetic_, {of.output_gradient, units_, true}, {of.read, features_}, of.weights_gradient,
           CUDA_R_32F, units_, features_, batch_);
  if (of.input_gradient == nullptr) return;
  void* produced = copies() ? of.scratch : of.input_gradient;
  multiply(context, arithmetic_, {of.output_gradient, units_}, {of.weights, features_}, produced, arithmetic_.type,
           batch_, features_, units_);
  if (copies()) transpose(produced, input_as_read_, of.input_gradient, input_as_it_lies_, images_, context.stream);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const DenseSpec& spec, const PrepareOptions& options, KernelChooser& chooser) {
  ARBALEST_CHECK(spec.input.shape().rank() >= 2 && spec.units > 0);
  return choose_product(spec, options, chooser, [&] { return std::make_unique<Dense>(spec, options); });
}

}  // namespace arbalest::engine::cuda
