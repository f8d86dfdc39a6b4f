#include "engine/cuda/block.h"
#include "engine/cuda/class_rows.h"
#include "engine/cuda/kernel_operator.h"
#include "engine/cuda/layout.h"
#include "engine/cuda/operators.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

// A number of a row and where it stands; place < 0: none yet.
struct Candidate {
  float value;
  std::int64_t place;
};

// The larger; the first, in a tie.
__device__ bool beats(const Candidate& challenger, const Candidate& best) {
  if (challenger.place < 0 || best.place < 0) return challenger.place >= 0;
  return challenger.value > best.value || (challenger.value == best.value && challenger.place < best.place);
}

// correct[block] = examples of the block that are right; with a single block it is the result, as a float.
// `T`: of the logits.
template <typename T>
__global__ void count_correct(const T* logits, const std::int32_t* labels, std::int64_t examples, std::int64_t classes,
                              std::int32_t* correct, float* result) {
  __shared__ float values[kBlockRows][kRowLanes];
  __shared__ std::int64_t places[kBlockRows][kRowLanes];
  const auto lane = static_cast<int>(threadIdx.x % kRowLanes);
  const auto slot = static_cast<int>(threadIdx.x / kRowLanes);
  std::int32_t count = 0;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kBlockRows; first < examples;
       first += std::int64_t{gridDim.x} * kBlockRows) {
    const std::int64_t example = first + slot;
    Candidate best{0.0F, -1};
    for (std::int64_t c = lane; example < examples && c < classes; c += kRowLanes) {
      const Candidate here{elementwise::load(logits[example * classes + c]), c};
      const bool is_number = here.value == here.value;
      if (is_number && beats(here, best)) best = here;
    }
    values[slot][lane] = best.value;
    places[slot][lane] = best.place;
    __syncthreads();
    if (lane == 0 && example < examples) {
      for (int other = 1; other < kRowLanes; ++other) {
        const Candidate there{values[slot][other], places[slot][other]};
        if (beats(there, best)) best = there;
      }
      const std::int32_t label = labels[example];
      if (label != kNoLabel && best.place == label) ++count;
    }
    __syncthreads();
  }
  count = block_sum(count);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    *result = static_cast<float>(count);
  } else {
    correct[blockIdx.x] = count;
  }
}

__global__ void sum_correct(const std::int32_t* correct, std::int64_t blocks, float* result) {
  std::int32_t count = 0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += kThreads) count += correct[i];
  count = block_sum(count);
  if (threadIdx.x == 0) *result = static_cast<float>(count);
}

template <typename T>
std::unique_ptr<Operator> make_accuracy(const AccuracySpec& spec) {
  const Shape& shape = spec.logits.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.labels.shape() == Shape{shape[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);

  const auto forward = [examples = shape[0], classes = shape[1]](const ForwardAddresses& addresses,
                                                                 const StreamContext& context) {
    const std::int64_t blocks = row_blocks(examples, classes);
    auto* correct = reinterpret_cast<std::int32_t*>(context.partials);
    auto* result = static_cast<float*>(addresses.output);
    launch(count_correct<T>, blocks, context.stream, static_cast<const T*>(addresses.input), addresses.labels, examples,
           classes, correct, result);
    if (blocks > 1) launch(sum_correct, 1, context.stream, correct, blocks, result);
  };

  OperatorTraits traits;
  traits.output = make_layout({1}, DType::kFloat32, Order::kCanonical);
  return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& /*options*/) {
  return is_bfloat16(spec.logits) ? make_accuracy<BFloat16>(spec) : make_accuracy<float>(spec);
}

}  // namespace arbalest::engine::cuda
