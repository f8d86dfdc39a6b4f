#include "engine/base/alignment.h"
#include "engine/base/error.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/ranks.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"

namespace arbalest::engine::cuda {

namespace {

// The ranks of all labels, and their counts if there is a single block. `T`: type of the logits.
template <typename T>
__device__ void rank_rows(const T* logits, const std::int32_t* labels, std::int64_t examples, std::int64_t classes,
                          const Tops& tops, std::int32_t* ranks, float* counts) {
  __shared__ std::int32_t lanes[kBlockRows][kRowLanes];
  for_rows(examples, [&](const RowPlace& at) {
    const auto [n, slot, lane] = at;
    const std::int32_t label = n < examples ? labels[n] : kNoLabel;
    const T* row = logits + n * classes;
    lanes[slot][lane] = rank_of_lane(row, classes, label, lane);
    __syncthreads();
    if (n < examples && lane == 0) ranks[n] = rank_of_row(row, classes, label, lanes[slot]);
  });
  if (gridDim.x > 1) return;
  __syncthreads();  // makes all ranks visible to the block
  count_ranks(ranks, examples, tops, counts);
}

__device__ void count_all(const std::int32_t* ranks, std::int64_t examples, const Tops& tops, float* counts) {
  count_ranks(ranks, examples, tops, counts);
}

template <typename T>
std::unique_ptr<Operator> make_accuracy(const AccuracySpec& spec) {
  const Shape& shape = spec.logits.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.labels.shape() == Shape{shape[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32 && !spec.top.empty());

  const auto forward = [examples = shape[0], classes = shape[1], tops = tops_of(spec.top)](
                           const ForwardAddresses& addresses, const StreamContext& context) {
    const std::int64_t blocks = row_blocks(examples, classes);
    auto* ranks = static_cast<std::int32_t*>(addresses.scratch);
    auto* counts = static_cast<float*>(addresses.output);
    launch<rank_rows<T>>(blocks, context.stream, static_cast<const T*>(addresses.input),
                         static_cast<const std::int32_t*>(addresses.labels), examples, classes, tops, ranks, counts);
    if (blocks > 1) launch<count_all>(1, context.stream, ranks, examples, tops, counts);
  };

  OperatorTraits traits;
  traits.output = make_layout({static_cast<std::int64_t>(spec.top.size())}, DType::kFloat32, Order::kCanonical);
  traits.scratch_bytes = aligned(static_cast<std::size_t>(shape[0]) * sizeof(std::int32_t));  // ranks
  return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& /*options*/) {
  return is_bfloat16(spec.logits) ? make_accuracy<BFloat16>(spec) : make_accuracy<float>(spec);
}

}  // namespace arbalest::engine::cuda
