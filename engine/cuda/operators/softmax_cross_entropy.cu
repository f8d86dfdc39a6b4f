#include <cmath>
#include <limits>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::load;
using elementwise::store;

// Below, `T` is the type of the logits and their gradient.

struct Extents {
  std::int64_t examples;
  std::int64_t classes;
};

// Results of the forward pass for the backward pass; both null at inference.
struct Saved {
  float* probabilities;  // [examples, classes]; rows without a label are not written
  float* labeled;        // number of examples with a label

  template <typename Visitor>
  __host__ __device__ friend constexpr void visit_addresses(Saved& of, Visitor&& visit) {
    visit(of.probabilities);
    visit(of.labeled);
  }
};

// The weight of the summed losses, and whether they are added to an earlier loss.
struct Weighting {
  float weight;
  std::int32_t adds;  // 1 or 0
};

__device__ void finish_loss(double sum, const Weighting& weighting, float* result) {
  *result = static_cast<float>(static_cast<double>(weighting.weight) * sum) + (weighting.adds != 0 ? *result : 0.0F);
}

__device__ bool is_class(std::int32_t label, std::int64_t classes) { return label >= 0 && label < classes; }

// Adds up the losses and counts labeled examples, in one block and thus in a fixed order of additions.
__device__ void total_losses(const double* losses, const std::int32_t* labels, std::int64_t examples,
                             const Saved& saved, const Weighting& weighting, float* result) {
  double sum = 0.0;
  std::int32_t labeled = 0;
  for (std::int64_t n = threadIdx.x; n < examples; n += kThreads) {
    sum += losses[n];
    labeled += labels[n] == kNoLabel ? 0 : 1;
  }
  sum = block_sum(sum);
  labeled = block_sum(labeled);
  if (threadIdx.x != 0) return;
  finish_loss(sum, weighting, result);
  if (saved.labeled != nullptr) *saved.labeled = static_cast<float>(labeled);
}

template <typename T>
__device__ double sum_of_lane(const T* logits, std::int64_t classes, int lane) {
  double sum = 0.0;
  for (std::int64_t c = lane; c < classes; c += kRowLanes) sum += static_cast<double>(load(logits[c]));
  return sum;
}

// log(sum_c exp(a_c)) - a_y. NaN and infinite logits give NaN or infinity, never a harmless number. A label that is no
// class gives NaN: a kernel has no other way to report it.
template <typename T>
__device__ double example_loss(const T* logits, std::int64_t classes, std::int32_t label, float largest, float sum) {
  if (!is_class(label, classes)) return std::numeric_limits<double>::quiet_NaN();
  return std::log(static_cast<double>(sum)) + (static_cast<double>(largest) - static_cast<double>(load(logits[label])));
}

// The losses of all examples, and their sum if there is a single block.
//   smoothing: adds smoothing (a_y - mean_c a_c) to each loss
template <typename T>
__device__ void forward_rows(const T* logits, const std::int32_t* labels, Extents extents, float smoothing, Saved saved,
                             double* losses, Weighting weighting, float* result) {
  __shared__ double logit_sums[kBlockRows][kRowLanes];
  __shared__ float largest_of[kBlockRows][kRowLanes];
  __shared__ float sums[kBlockRows][kRowLanes];
  for_rows(extents.examples, [&](const RowPlace& at) {
    const auto [n, slot, lane] = at;
    const bool is_there = n < extents.examples;
    const std::int32_t label = is_there ? labels[n] : kNoLabel;
    const std::int64_t classes = label == kNoLabel ? 0 : extents.classes;
    const T* row = logits + n * extents.classes;
    float* probabilities = saved.probabilities == nullptr ? nullptr : saved.probabilities + n * extents.classes;
    largest_of[slot][lane] = largest_of_lane(row, classes, lane);
    __syncthreads();
    const float largest = largest_of_lanes(largest_of[slot]);
    sums[slot][lane] = sum_exponentials(row, largest, classes, lane, probabilities);
    if (smoothing > 0.0F) logit_sums[slot][lane] = sum_of_lane(row, classes, lane);
    __syncthreads();
    const float sum = sum_of_lanes(sums[slot]);
    if (probabilities != nullptr) {
      for (std::int64_t c = lane; c < classes; c += kRowLanes) probabilities[c] /= sum;
    }
    if (is_there && lane == 0) {
      losses[n] = label == kNoLabel ? 0.0 : example_loss(row, classes, label, largest, sum);
      if (smoothing > 0.0F && is_class(label, classes)) {
        const double mean = sum_of_lanes(logit_sums[slot]) / static_cast<double>(classes);
        losses[n] += static_cast<double>(smoothing) * (static_cast<double>(load(row[label])) - mean);
      }
    }
  });
  if (gridDim.x > 1) return;
  __syncthreads();  // makes all losses visible to the block
  total_losses(losses, labels, extents.examples, saved, weighting, result);
}

__device__ void sum_losses(const double* losses, const std::int32_t* labels, std::int64_t examples, Saved saved,
                           Weighting weighting, float* result) {
  total_losses(losses, labels, examples, saved, weighting, result);
}

// Target values of the label's class and of every other class.
struct Targets {
  float label;
  float other;
};

// weight (softmax(a)_c - target) / labeled; zero without a label, NaN if the label is no class.
template <typename T>
__device__ void backward_elements(const float* probabilities, const float* labeled, const std::int32_t* labels,
                                  Extents extents, Targets targets, float weight, T* gradient) {
  for (std::int64_t i = first_element(); i < extents.examples * extents.classes; i += element_step()) {
    const std::int64_t n = i / extents.classes;
    const std::int32_t label = labels[n];
    if (label == kNoLabel) {
      store(0.0F, gradient[i]);
    } else if (!is_class(label, extents.classes)) {
      store(std::numeric_limits<float>::quiet_NaN(), gradient[i]);
    } else {
      const float target = i - n * extents.classes == label ? targets.label : targets.other;
      store(weight * ((probabilities[i] - target) / *labeled), gradient[i]);
    }
  }
}

template <typename T>
KernelOperator::Forward make_forward(const Extents& extents, float smoothing, bool training,
                                     const Weighting& weighting) {
  return [=](const ForwardAddresses& addresses, const StreamContext& context) {
    const auto* labels = static_cast<const std::int32_t*>(addresses.labels);
    auto* losses = static_cast<double*>(addresses.scratch);
    auto* result = static_cast<float*>(addresses.output);
    Saved saved{nullptr, nullptr};
    if (training) {
      saved.probabilities = static_cast<float*>(addresses.saved);
      saved.labeled = saved.probabilities + extents.examples * extents.classes;
    }
    const std::int64_t blocks = row_blocks(extents.examples, extents.classes);
    launch<forward_rows<T>>(blocks, context.stream, static_cast<const T*>(addresses.input), labels, extents, smoothing,
                            saved, losses, weighting, result);
    if (blocks > 1) launch<sum_losses>(1, context.stream, losses, labels, extents.examples, saved, weighting, result);
  };
}

template <typename T>
KernelOperator::Backward make_backward(const Extents& extents, const Targets& targets, float weight) {
  return [=](const BackwardAddresses& addresses, const StreamContext& context) {
    const std::int64_t elements = extents.examples * extents.classes;
    const auto* labels = static_cast<const std::int32_t*>(addresses.labels);
    const auto* probabilities = static_cast<const float*>(addresses.saved);
    launch<backward_elements<T>>(blocks_for(elements), context.stream, probabilities, probabilities + elements, labels,
                                 extents, targets, weight, static_cast<T*>(addresses.input_gradient));
  };
}

template <typename T>
std::unique_ptr<Operator> make_loss(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options) {
  const Shape& logits = spec.logits.shape();
  ARBALEST_CHECK(logits.rank() == 2 && spec.labels.shape() == Shape{logits[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);
  const Extents extents{logits[0], logits[1]};
  const bool training = options.mode == OperatorMode::kTraining;
  const float smoothing = training ? spec.label_smoothing : 0.0F;

  OperatorTraits traits;
  traits.output = make_layout({1}, DType::kFloat32, Order::kCanonical);
  traits.scratch_bytes = aligned(static_cast<std::size_t>(extents.examples) * sizeof(double));  // losses
  const Weighting weighting{training ? spec.weight : 1.0F, options.adds_to_loss ? 1 : 0};
  KernelOperator::Backward backward;
  if (training) {
    traits.saved_bytes = aligned((static_cast<std::size_t>(logits.elements()) + 1) * sizeof(float));
    if (options.input_gradient) {
      const float other = target_of_others(spec);
      backward = make_backward<T>(extents, {other + (1.0F - spec.label_smoothing), other}, spec.weight);
    }
  }
  return std::make_unique<KernelOperator>(std::move(traits), make_forward<T>(extents, smoothing, training, weighting),
                                          std::move(backward));
}

}  // namespace

std::unique_ptr<Operator> make_operator(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options) {
  return is_bfloat16(spec.logits) ? make_loss<BFloat16>(spec, options) : make_loss<float>(spec, options);
}

}  // namespace arbalest::engine::cuda
