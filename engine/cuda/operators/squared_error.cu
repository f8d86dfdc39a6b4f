#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

__device__ bool is_labeled(float label) { return label == label; }

// Below, `T` is the type of the predictions and their gradient.

// Launched with one block, so that the order of additions is fixed. Stores the number of labeled examples for the
// backward pass; `labeled` is null at inference.
template <typename T>
__device__ void sum_errors(const T* predictions, const float* labels, std::int64_t examples, float weight,
                           std::int32_t adds, float* labeled, float* result) {
  double sum = 0.0;
  std::int32_t count = 0;
  for (std::int64_t n = threadIdx.x; n < examples; n += kThreads) {
    if (!is_labeled(labels[n])) continue;
    const double error = static_cast<double>(load(predictions[n])) - static_cast<double>(labels[n]);
    sum += error * error;
    ++count;
  }
  sum = block_sum(sum);
  count = block_sum(count);
  if (threadIdx.x != 0) return;
  *result = static_cast<float>(static_cast<double>(weight) * sum) + (adds != 0 ? *result : 0.0F);
  if (labeled != nullptr) *labeled = static_cast<float>(count);
}

template <typename T>
__device__ void differentiate(const T* predictions, const float* labels, const float* labeled, std::int64_t examples,
                              float weight, T* gradient) {
  for (std::int64_t n = first_element(); n < examples; n += element_step()) {
    const float error = load(predictions[n]) - labels[n];
    store(is_labeled(labels[n]) ? weight * (2.0F * error / *labeled) : 0.0F, gradient[n]);
  }
}

template <typename T>
std::unique_ptr<Operator> make_loss(const SquaredErrorSpec& spec, const PrepareOptions& options) {
  const std::int64_t examples = spec.predictions.shape()[0];
  const bool training = options.mode == OperatorMode::kTraining;
  OperatorTraits traits;
  traits.output = make_layout({1}, DType::kFloat32, Order::kCanonical);
  if (training) traits.saved_bytes = aligned(sizeof(float));
  traits.backward_reads_inputs = training;
  const auto forward = [=, weight = training ? spec.weight : 1.0F, adds = options.adds_to_loss ? 1 : 0](
                           const ForwardAddresses& addresses, const StreamContext& context) {
    launch<sum_errors<T>>(1, context.stream, static_cast<const T*>(addresses.input),
                          static_cast<const float*>(addresses.labels), examples, weight, adds,
                          static_cast<float*>(addresses.saved), static_cast<float*>(addresses.output));
  };
  KernelOperator::Backward backward;
  if (training && options.input_gradient) {
    backward = [=, weight = spec.weight](const BackwardAddresses& addresses, const StreamContext& context) {
      launch<differentiate<T>>(blocks_for(examples), context.stream, static_cast<const T*>(addresses.input),
                               static_cast<const float*>(addresses.labels), static_cast<const float*>(addresses.saved),
                               examples, weight, static_cast<T*>(addresses.input_gradient));
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const SquaredErrorSpec& spec, const PrepareOptions& options) {
  const Shape& shape = spec.predictions.shape();
  ARBALEST_CHECK(shape.rank() == 2 && shape[1] == 1);
  ARBALEST_CHECK(spec.labels.shape() == Shape{shape[0]} && spec.labels.dtype() == DType::kFloat32);
  return is_bfloat16(spec.predictions) ? make_loss<BFloat16>(spec, options) : make_loss<float>(spec, options);
}

}  // namespace arbalest::engine::cuda
