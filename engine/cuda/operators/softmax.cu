#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/exponential.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

struct Extents {
  std::int64_t rows;
  std::int64_t classes;
};

// Below, `T` is the type of all tensors. Sums are float32. Input and output may share a buffer.

template <typename T>
__device__ void softmax_rows(const T* input, T* output, Extents extents) {
  __shared__ float largest_of[kBlockRows][kRowLanes];
  __shared__ float sums[kBlockRows][kRowLanes];
  for_rows(extents.rows, [&](const RowPlace& at) {
    const auto [row, slot, lane] = at;
    const std::int64_t classes = row < extents.rows ? extents.classes : 0;
    const T* logits = input + row * extents.classes;
    largest_of[slot][lane] = largest_of_lane(logits, classes, lane);
    __syncthreads();
    const float largest = largest_of_lanes(largest_of[slot]);
    sums[slot][lane] = sum_exponentials(logits, largest, classes, lane);
    __syncthreads();
    const float sum = sum_of_lanes(sums[slot]);
    for (std::int64_t c = lane; c < classes; c += kRowLanes) {
      store(elementwise::exponential(load(logits[c]) - largest) / sum, output[row * extents.classes + c]);
    }
  });
}

template <typename T>
__device__ void softmax_rows_backward(const T* output, const T* output_gradient, T* input_gradient, Extents extents) {
  __shared__ float sums[kBlockRows][kRowLanes];
  for_rows(extents.rows, [&](const RowPlace& at) {
    const auto [row, slot, lane] = at;
    const std::int64_t begin = row * extents.classes;
    const std::int64_t end = row < extents.rows ? begin + extents.classes : begin;
    float sum = 0.0F;
    for (std::int64_t i = begin + lane; i < end; i += kRowLanes) sum += load(output[i]) * load(output_gradient[i]);
    sums[slot][lane] = sum;
    __syncthreads();
    const float mean = sum_of_lanes(sums[slot]);
    for (std::int64_t i = begin + lane; i < end; i += kRowLanes) {
      store(load(output[i]) * (load(output_gradient[i]) - mean), input_gradient[i]);
    }
  });
}

template <typename T>
std::unique_ptr<Operator> make_softmax(const SoftmaxSpec& spec, const PrepareOptions& options) {
  const Extents extents{spec.input.shape()[0], spec.input.shape()[1]};
  const std::int64_t blocks = blocks_of_rows(extents.rows);
  OperatorTraits traits;
  traits.output = spec.input;
  traits.in_place_forward = true;
  const auto forward = [=](const ForwardAddresses& addresses, const StreamContext& context) {
    launch<softmax_rows<T>>(blocks, context.stream, static_cast<const T*>(addresses.input),
                            static_cast<T*>(addresses.output), extents);
  };
  if (options.mode == OperatorMode::kInference) {
    return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
  }

  traits.backward_reads_output = true;
  traits.in_place_backward = true;
  KernelOperator::Backward backward;
  if (options.input_gradient) {
    backward = [=](const BackwardAddresses& addresses, const StreamContext& context) {
      launch<softmax_rows_backward<T>>(blocks, context.stream, static_cast<const T*>(addresses.output),
                                       static_cast<const T*>(addresses.output_gradient),
                                       static_cast<T*>(addresses.input_gradient), extents);
    };
  }
  return std::make_unique<KernelOperator>(std::move(traits), forward, std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const SoftmaxSpec& spec, const PrepareOptions& options) {
  ARBALEST_CHECK(spec.input.shape().rank() == 2);
  return is_bfloat16(spec.input) ? make_softmax<BFloat16>(spec, options) : make_softmax<float>(spec, options);
}

}  // namespace arbalest::engine::cuda
