#include "engine/elementwise/averaging.h"

#include <algorithm>

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/elementwise/finite.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::CentralTerms;

// Addresses of replicas travel as a kernel argument, of which there are 4 KB.
constexpr std::size_t kGroup = 32;
constexpr std::size_t kLargestGroup = 448;

template <std::size_t capacity>
struct ReplicaGroup {
  const float* addresses[capacity];
  std::int32_t count;
};

// What one block adds to the tail.
struct BlockTail {
  double squared_distance;
  std::int32_t non_finite;       // of S
  std::int32_t non_finite_next;  // of z^{t+1}
};
static_assert(sizeof(BlockTail) * kMaxBlocks <= sizeof(float) * kPartials);

BlockTail* block_tails(const StreamContext& context) { return reinterpret_cast<BlockTail*>(context.partials); }

template <std::size_t capacity>
ReplicaGroup<capacity> make_group(std::span<const float* const> replicas) {
  ReplicaGroup<capacity> group{};
  std::copy(replicas.begin(), replicas.end(), group.addresses);
  group.count = static_cast<std::int32_t>(replicas.size());
  return group;
}

struct ElementSum {
  float sum;      // of the differences, in order of the replicas
  float squares;  // of them
};

template <std::size_t capacity>
__device__ ElementSum add_differences(const ReplicaGroup<capacity>& replicas, std::int64_t i, float central,
                                      float sum) {
  ElementSum total{sum, 0.0F};
  for (std::int32_t j = 0; j < replicas.count; ++j) {
    const float difference = replicas.addresses[j][i] - central;
    total.sum += difference;
    total.squares += difference * difference;
  }
  return total;
}

// All threads of the block must call it.
__device__ BlockTail sum_of_block(const BlockTail& of_thread) {
  return {block_sum(of_thread.squared_distance), block_sum(of_thread.non_finite), block_sum(of_thread.non_finite_next)};
}

// Weights, and behind them statistics.
struct Extent {
  std::int64_t elements;
  std::int64_t weights;
};

template <typename Task>
Extent extent_of(const Task& task) {
  return {task.elements, task.elements - task.statistics};
}

// sum = (is_first ? 0 : sum) + sum_j (w_j - z); tails[block] alike.
__global__ void add_group(const ReplicaGroup<kGroup> replicas, const float* central, float* sum, const Extent of,
                          bool is_first, bool is_last, BlockTail* tails) {
  BlockTail tail{};
  for (std::int64_t i = first_element(); i < of.elements; i += element_step()) {
    const ElementSum added = add_differences(replicas, i, central[i], is_first ? 0.0F : sum[i]);
    sum[i] = added.sum;
    if (i < of.weights) tail.squared_distance += static_cast<double>(added.squares);
    if (is_last) tail.non_finite += elementwise::count_non_finite(added.sum);
  }
  tail = sum_of_block(tail);
  if (threadIdx.x != 0) return;
  if (!is_first) tail.squared_distance += tails[blockIdx.x].squared_distance;
  tails[blockIdx.x] = tail;
}

struct SegmentTerms {
  CentralTerms weights;
  CentralTerms statistics;
};

template <typename Task>
SegmentTerms terms_of(const Task& task) {
  return {{task.alpha, task.central_momentum}, elementwise::statistics_terms(task.mean_factor)};
}

template <std::size_t capacity>
__global__ void average(const ReplicaGroup<capacity> replicas, const float* central, float* previous,
                        const SegmentTerms terms, const Extent of, BlockTail* tails) {
  BlockTail tail{};
  for (std::int64_t i = first_element(); i < of.elements; i += element_step()) {
    const bool is_weight = i < of.weights;
    const float z = central[i];
    const ElementSum added = add_differences(replicas, i, z, 0.0F);
    const float next =
        elementwise::next_central(z, previous[i], added.sum, is_weight ? terms.weights : terms.statistics);
    previous[i] = next;
    if (is_weight) tail.squared_distance += static_cast<double>(added.squares);
    tail.non_finite += elementwise::count_non_finite(added.sum);
    tail.non_finite_next += elementwise::count_non_finite(next);
  }
  tail = sum_of_block(tail);
  if (threadIdx.x == 0) tails[blockIdx.x] = tail;
}

// Does nothing where the tail counts an element of S that is not finite.
__global__ void update_central(const float* central, float* previous, const float* sum, const SegmentTerms terms,
                               const Extent of, BlockTail* tails) {
  BlockTail tail{};
  if (sum[of.elements + kNonFiniteCount] == 0.0F) {
    for (std::int64_t i = first_element(); i < of.elements; i += element_step()) {
      const float next =
          elementwise::next_central(central[i], previous[i], sum[i], i < of.weights ? terms.weights : terms.statistics);
      previous[i] = next;
      tail.non_finite_next += elementwise::count_non_finite(next);
    }
  }
  tail = sum_of_block(tail);
  if (threadIdx.x == 0) tails[blockIdx.x] = tail;
}

// The blocks' tails added up, in every thread of a single block.
__device__ BlockTail sum_of_tails(const BlockTail* tails, std::int64_t count) {
  BlockTail tail{};
  for (std::int64_t i = threadIdx.x; i < count; i += kThreads) {
    tail.squared_distance += tails[i].squared_distance;
    tail.non_finite += tails[i].non_finite;
    tail.non_finite_next += tails[i].non_finite_next;
  }
  return sum_of_block(tail);
}

__global__ void store_tail(const BlockTail* tails, std::int64_t count, float* target) {
  const BlockTail tail = sum_of_tails(tails, count);
  if (threadIdx.x != 0) return;
  const std::int32_t non_finite = tail.non_finite != 0 ? tail.non_finite : tail.non_finite_next;
  target[kNonFiniteCount] = static_cast<float>(non_finite);
  target[kSquaredDistance] = static_cast<float>(tail.squared_distance);
}

// Finite differences of several devices may still add up to infinity; every device sees the same sum.
__global__ void count_next(const BlockTail* tails, std::int64_t count, float* non_finite) {
  const BlockTail tail = sum_of_tails(tails, count);
  if (threadIdx.x == 0 && *non_finite == 0.0F) *non_finite = static_cast<float>(tail.non_finite_next);
}

__global__ void keep_central(const float* non_finite, const float* central, float* previous, std::int64_t elements) {
  if (*non_finite == 0.0F) return;
  for (std::int64_t i = first_element(); i < elements; i += element_step()) previous[i] = central[i];
}

template <std::size_t capacity>
void launch_average(const LocalAveraging& task, const StreamContext& context) {
  launch(average<capacity>, blocks_for(task.elements), context.stream, make_group<capacity>(task.replicas),
         task.central, task.previous, terms_of(task), extent_of(task), block_tails(context));
}

}  // namespace

void run_flat(const ReplicaDifference& task, const StreamContext& context) {
  const std::int64_t blocks = blocks_for(task.elements);
  std::size_t done = 0;
  do {
    const std::size_t count = std::min(kGroup, task.replicas.size() - done);
    launch(add_group, blocks, context.stream, make_group<kGroup>(task.replicas.subspan(done, count)), task.central,
           task.sum, extent_of(task), done == 0, done + count == task.replicas.size(), block_tails(context));
    done += count;
  } while (done < task.replicas.size());
  launch(store_tail, 1, context.stream, block_tails(context), blocks, task.sum + task.elements);
}

void run_flat(const CentralUpdate& task, const StreamContext& context) {
  const std::int64_t blocks = blocks_for(task.elements);
  float* non_finite = task.sum + task.elements + kNonFiniteCount;
  launch(update_central, blocks, context.stream, task.central, task.previous, task.sum, terms_of(task), extent_of(task),
         block_tails(context));
  launch(count_next, 1, context.stream, block_tails(context), blocks, non_finite);
  launch(keep_central, blocks, context.stream, non_finite, task.central, task.previous, task.elements);
}

void run_flat(const LocalAveraging& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.replicas.empty());
  if (task.replicas.size() > kLargestGroup) {
    fail(ErrorKind::kDevice, "{} learners on one GPU, but it averages at most {}; set fewer learners per device",
         task.replicas.size(), kLargestGroup);
  }
  const auto run = task.replicas.size() <= kGroup ? launch_average<kGroup> : launch_average<kLargestGroup>;
  run(task, context);
  launch(store_tail, 1, context.stream, block_tails(context), blocks_for(task.elements), task.tail);
  launch(keep_central, blocks_for(task.elements), context.stream, task.tail + kNonFiniteCount, task.central,
         task.previous, task.elements);
}

}  // namespace arbalest::engine::cuda
