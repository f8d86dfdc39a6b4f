#include <cmath>
#include <limits>

#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/ranks.h"
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

// The weight of the summed losses, and whether they are added to an earlier loss.
struct Weighting {
  float weight;
  std::int32_t adds;  // 1 or 0
};

__device__ void finish_loss(double sum, const Weighting& weighting, float* result) {
  *result = static_cast<float>(static_cast<double>(weighting.weight) * sum) + (weighting.adds != 0 ? *result : 0.0F);
}

__device__ bool is_class(std::int32_t label, std::int64_t classes) { return label >= 0 && label < classes; }

// Adds up the losses, in one block and thus in a fixed order of additions.
__device__ void total_losses(const double* losses, std::int64_t examples, const Weighting& weighting, float* result) {
  double sum = 0.0;
  for (std::int64_t n = threadIdx.x; n < examples; n += kThreads) sum += losses[n];
  sum = block_sum(sum);
  if (threadIdx.x == 0) finish_loss(sum, weighting, result);
}

// Number of examples with a label, in every thread of the block.
__device__ std::int32_t count_labeled(const std::int32_t* labels, std::int64_t examples) {
  std::int32_t labeled = 0;
  for (std::int64_t n = threadIdx.x; n < examples; n += kThreads) labeled += labels[n] == kNoLabel ? 0 : 1;
  return block_sum(labeled);
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

// Target values of the label's class and of every other class.
struct Targets {
  float label;
  float other;
};

// weight (softmax(a)_c - target) / labeled; zero without a label, NaN if the label is no class. `logits` and `gradient`
// are rows; a term of softmax(a) is exp(a_c - largest) / sum.
template <typename T>
__device__ void gradient_of_lane(const T* logits, std::int64_t classes, int lane, std::int32_t label, float largest,
                                 float sum, float labeled, const Targets& targets, float weight, T* gradient) {
  for (std::int64_t c = lane; c < classes; c += kRowLanes) {
    if (label == kNoLabel) {
      store(0.0F, gradient[c]);
    } else if (!is_class(label, classes)) {
      store(std::numeric_limits<float>::quiet_NaN(), gradient[c]);
    } else {
      const float probability = elementwise::exponential(load(logits[c]) - largest) / sum;
      store(weight * ((probability - (c == label ? targets.label : targets.other)) / labeled), gradient[c]);
    }
  }
}

// The results of each example, in the operator's scratch.
struct OfExamples {
  double* losses;
  std::int32_t* ranks;  // of labels; written if some k is to be counted
};

template <typename Visitor>
__host__ __device__ constexpr void visit_addresses(OfExamples& of, Visitor&& visit) {
  visit(of.losses);
  visit(of.ranks);
}

// Writes the loss and the counts behind it. One block computes them.
__device__ void finish(const OfExamples& of, std::int64_t examples, const Weighting& weighting, const Tops& tops,
                       float* result) {
  total_losses(of.losses, examples, weighting, result);
  count_ranks(of.ranks, examples, tops, result + 1);
}

// The losses and ranks of all examples, and the results if there is a single block.
//   smoothing: adds smoothing (a_y - mean_c a_c) to each loss
//   gradient: null if it is not wanted
template <typename T>
__device__ void forward_rows(const T* logits, const std::int32_t* labels, Extents extents, float smoothing,
                             Targets targets, T* gradient, OfExamples of, Weighting weighting, const Tops& tops,
                             float* result) {
  __shared__ double logit_sums[kBlockRows][kRowLanes];
  __shared__ float largest_of[kBlockRows][kRowLanes];
  __shared__ float sums[kBlockRows][kRowLanes];
  __shared__ std::int32_t ranks[kBlockRows][kRowLanes];
  const auto labeled = gradient == nullptr ? 0.0F : static_cast<float>(count_labeled(labels, extents.examples));
  for_rows(extents.examples, [&](const RowPlace& at) {
    const auto [n, slot, lane] = at;
    const bool is_there = n < extents.examples;
    const std::int32_t label = is_there ? labels[n] : kNoLabel;
    const std::int64_t classes = label == kNoLabel ? 0 : extents.classes;
    const T* row = logits + n * extents.classes;
    largest_of[slot][lane] = largest_of_lane(row, classes, lane);
    __syncthreads();
    const float largest = largest_of_lanes(largest_of[slot]);
    sums[slot][lane] = sum_exponentials(row, largest, classes, lane);
    if (smoothing > 0.0F) logit_sums[slot][lane] = sum_of_lane(row, classes, lane);
    if (tops.count > 0) ranks[slot][lane] = rank_of_lane(row, classes, label, lane);
    __syncthreads();
    const float sum = sum_of_lanes(sums[slot]);
    if (is_there && gradient != nullptr) {
      gradient_of_lane(row, extents.classes, lane, label, largest, sum, labeled, targets, weighting.weight,
                       gradient + n * extents.classes);
    }
    if (is_there && lane == 0) {
      if (tops.count > 0) of.ranks[n] = rank_of_row(row, classes, label, ranks[slot]);
      of.losses[n] = label == kNoLabel ? 0.0 : example_loss(row, classes, label, largest, sum);
      if (smoothing > 0.0F && is_class(label, classes)) {
        const double mean = sum_of_lanes(logit_sums[slot]) / static_cast<double>(classes);
        of.losses[n] += static_cast<double>(smoothing) * (static_cast<double>(load(row[label])) - mean);
      }
    }
  });
  if (gridDim.x > 1) return;
  __syncthreads();  // makes the results of all examples visible to the block
  finish(of, extents.examples, weighting, tops, result);
}

__device__ void finish_rows(OfExamples of, std::int64_t examples, Weighting weighting, const Tops& tops,
                            float* result) {
  finish(of, examples, weighting, tops, result);
}

// Bytes of OfExamples::losses in the scratch; the ranks follow.
std::size_t bytes_of_losses(std::int64_t examples) {
  return aligned(static_cast<std::size_t>(examples) * sizeof(double));
}

template <typename T>
KernelOperator::Forward make_forward(const Extents& extents, float smoothing, const Targets& targets,
                                     const Weighting& weighting, const Tops& tops) {
  return [=](const ForwardAddresses& addresses, const StreamContext& context) {
    const auto* labels = static_cast<const std::int32_t*>(addresses.labels);
    auto* ranks = static_cast<std::byte*>(addresses.scratch) + bytes_of_losses(extents.examples);
    const OfExamples of{static_cast<double*>(addresses.scratch), reinterpret_cast<std::int32_t*>(ranks)};
    auto* result = static_cast<float*>(addresses.output);
    const std::int64_t blocks = row_blocks(extents.examples, extents.classes);
    launch<forward_rows<T>>(blocks, context.stream, static_cast<const T*>(addresses.input), labels, extents, smoothing,
                            targets, static_cast<T*>(addresses.input_gradient), of, weighting, tops, result);
    if (blocks > 1) launch<finish_rows>(1, context.stream, of, extents.examples, weighting, tops, result);
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
  const auto counts = static_cast<std::int64_t>(spec.top.size());
  traits.output = make_layout({1 + counts}, DType::kFloat32, Order::kCanonical);
  traits.scratch_bytes =
      bytes_of_losses(extents.examples) + aligned(static_cast<std::size_t>(extents.examples) * sizeof(std::int32_t));
  traits.forward_writes_gradient = training && options.input_gradient;
  const Weighting weighting{training ? spec.weight : 1.0F, options.adds_to_loss ? 1 : 0};
  const float other = target_of_others(spec);
  const Targets targets{other + (1.0F - spec.label_smoothing), other};
  return std::make_unique<KernelOperator>(std::move(traits),
                                          make_forward<T>(extents, smoothing, targets, weighting, tops_of(spec.top)),
                                          KernelOperator::Backward());
}

}  // namespace

std::unique_ptr<Operator> make_operator(const SoftmaxCrossEntropySpec& spec, const PrepareOptions& options) {
  return is_bfloat16(spec.logits) ? make_loss<BFloat16>(spec, options) : make_loss<float>(spec, options);
}

}  // namespace arbalest::engine::cuda
