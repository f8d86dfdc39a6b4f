#include <algorithm>

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/layout.h"
#include "engine/cuda/kernels/rows.h"
#include "engine/cuda/operators/kernel_operator.h"
#include "engine/cuda/operators/operators.h"
#include "engine/elementwise/bfloat16.h"
#include "engine/elementwise/portable.h"
#include "engine/elementwise/rank.h"

namespace arbalest::engine::cuda {

namespace {

// AccuracySpec::top as an argument of the kernels.
struct Tops {
  std::int32_t count;
  std::int32_t top[kMaxRankCounts];
};

// One number for each of Tops, below 2^31; the rest is 0.
struct Counts {
  std::int32_t of[kMaxRankCounts];
};
static_assert(sizeof(Counts) * kMaxBlocks <= sizeof(float) * kPartials);

// Calls f(k) for each of Tops. The loop is unrolled, so that arrays indexed by k lie in registers.
template <typename F>
__device__ void for_tops(std::int32_t count, const F& f) {
  ARBALEST_UNROLL
  for (int k = 0; k < kMaxRankCounts; ++k) {
    if (k < count) f(k);
  }
}

// All threads of the block must call it.
__device__ Counts block_sum_of(const Counts& counts, std::int32_t count) {
  Counts sums{};
  for_tops(count, [&](int k) { sums.of[k] = block_sum(counts.of[k]); });
  return sums;
}

__device__ void write_result(const Counts& counts, std::int32_t count, float* result) {
  for_tops(count, [&](int k) { result[k] = static_cast<float>(counts.of[k]); });
}

// Number of the lane's logits that rank before the label's.
template <typename T>
__device__ std::int32_t rank_of_lane(const T* logits, std::int64_t classes, std::int32_t label, int lane) {
  const float of_label = elementwise::load(logits[label]);
  std::int32_t rank = 0;
  for (std::int64_t c = lane; c < classes; c += kRowLanes) {
    rank += elementwise::ranks_before(elementwise::load(logits[c]), c, of_label, label) ? 1 : 0;
  }
  return rank;
}

// blocks[block] = counts of the block's examples. With a single block these are the result.
// `T`: type of the logits.
template <typename T>
__device__ void count_correct(const T* logits, const std::int32_t* labels, std::int64_t examples, std::int64_t classes,
                              Tops tops, Counts* blocks, float* result) {
  __shared__ std::int32_t ranks[kBlockRows][kRowLanes];
  Counts counts{};
  for_rows(examples, [&](const RowPlace& at) {
    const auto [example, slot, lane] = at;
    const std::int32_t label = example < examples ? labels[example] : kNoLabel;
    const bool is_class = label >= 0 && label < classes;
    const T* row = logits + example * classes;
    ranks[slot][lane] = is_class ? rank_of_lane(row, classes, label, lane) : 0;
    __syncthreads();
    if (lane == 0 && is_class && elementwise::load(row[label]) == elementwise::load(row[label])) {
      const std::int32_t rank = sum_of_lanes(ranks[slot]);
      for_tops(tops.count, [&](int k) { counts.of[k] += rank < tops.top[k] ? 1 : 0; });
    }
  });
  counts = block_sum_of(counts, tops.count);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1) {
    write_result(counts, tops.count, result);
  } else {
    blocks[blockIdx.x] = counts;
  }
}

// `count`: as in Tops.
__device__ void sum_correct(const Counts* blocks, std::int64_t block_count, std::int32_t count, float* result) {
  Counts counts{};
  for (std::int64_t i = threadIdx.x; i < block_count; i += kThreads) {
    for_tops(count, [&](int k) { counts.of[k] += blocks[i].of[k]; });
  }
  counts = block_sum_of(counts, count);
  if (threadIdx.x == 0) write_result(counts, count, result);
}

Tops tops_of(const AccuracySpec& spec) {
  ARBALEST_CHECK(!spec.top.empty() && spec.top.size() <= kMaxRankCounts);
  Tops tops{static_cast<std::int32_t>(spec.top.size()), {}};
  std::ranges::copy(spec.top, tops.top);
  return tops;
}

template <typename T>
std::unique_ptr<Operator> make_accuracy(const AccuracySpec& spec) {
  const Shape& shape = spec.logits.shape();
  ARBALEST_CHECK(shape.rank() == 2 && spec.labels.shape() == Shape{shape[0]});
  ARBALEST_CHECK(spec.labels.dtype() == DType::kInt32);

  const auto forward = [examples = shape[0], classes = shape[1], tops = tops_of(spec)](
                           const ForwardAddresses& addresses, const StreamContext& context) {
    const std::int64_t blocks = row_blocks(examples, classes);
    auto* of_blocks = reinterpret_cast<Counts*>(context.partials);
    const auto* labels = static_cast<const std::int32_t*>(addresses.labels);
    auto* result = static_cast<float*>(addresses.output);
    launch<count_correct<T>>(blocks, context.stream, static_cast<const T*>(addresses.input), labels, examples, classes,
                             tops, of_blocks, result);
    if (blocks > 1) launch<sum_correct>(1, context.stream, of_blocks, blocks, tops.count, result);
  };

  OperatorTraits traits;
  traits.output = make_layout({static_cast<std::int64_t>(spec.top.size())}, DType::kFloat32, Order::kCanonical);
  return std::make_unique<KernelOperator>(std::move(traits), forward, nullptr);
}

}  // namespace

std::unique_ptr<Operator> make_operator(const AccuracySpec& spec, const PrepareOptions& /*options*/) {
  return is_bfloat16(spec.logits) ? make_accuracy<BFloat16>(spec) : make_accuracy<float>(spec);
}

}  // namespace arbalest::engine::cuda
