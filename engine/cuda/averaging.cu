#include "engine/elementwise/averaging.h"

#include "engine/cuda/block.h"
#include "engine/cuda/flat_tasks.h"
#include "engine/cuda/vector_group.h"
#include "engine/elementwise/finite.h"
#include "engine/error.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::CentralTerms;

// What one block adds to the tail.
struct BlockTail {
  double squared_distance;
  double squared_sum;
  std::int32_t non_finite;       // of S
  std::int32_t non_finite_next;  // of z^{t+1}
};
static_assert(sizeof(BlockTail) * kMaxBlocks <= sizeof(float) * kPartials);

BlockTail* block_tails(const StreamContext& context) { return reinterpret_cast<BlockTail*>(context.partials); }

struct ElementSum {
  float sum;      // of the differences
  float squares;  // of them
};

template <std::size_t capacity>
__device__ ElementSum add_differences(const VectorGroup<capacity>& replicas, std::int64_t i, float central) {
  float squares = 0.0F;
  const float sum = elementwise::pairwise_sum<VectorGroup<capacity>::kLevels>(replicas.count, [&](std::int32_t j) {
    const float difference = replicas.addresses[j][i] - central;
    squares += difference * difference;
    return difference;
  });
  return {sum, squares};
}

// All threads of the block must call it.
__device__ BlockTail sum_of_block(const BlockTail& of_thread) {
  return {block_sum(of_thread.squared_distance), block_sum(of_thread.squared_sum), block_sum(of_thread.non_finite),
          block_sum(of_thread.non_finite_next)};
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

// sum = sum_j (w_j - z)
template <std::size_t capacity>
__global__ void sum_differences(const VectorGroup<capacity> replicas, const float* central, float* sum, const Extent of,
                                BlockTail* tails) {
  BlockTail tail{};
  for (std::int64_t i = first_element(); i < of.elements; i += element_step()) {
    const ElementSum added = add_differences(replicas, i, central[i]);
    sum[i] = added.sum;
    if (i < of.weights) tail.squared_distance += static_cast<double>(added.squares);
    tail.non_finite += elementwise::count_non_finite(added.sum);
  }
  tail = sum_of_block(tail);
  if (threadIdx.x == 0) tails[blockIdx.x] = tail;
}

// How elements of each kind move.
struct CentralMove {
  CentralTerms weights;
  CentralTerms statistics;
  float* velocity;  // of weights; null: the heavy-ball rule
};

CentralMove move_by(const CentralStep& step) {
  return {{step.step, step.momentum}, elementwise::statistics_terms(step.mean_factor), step.velocity};
}

// previous[i] = z^{t+1}[i], given z and S of the element. Adds to the tail what both passes add alike.
__device__ void move_element(const CentralMove& by, std::int64_t i, bool is_weight, float z, float sum, float* previous,
                             BlockTail& tail) {
  float next = 0.0F;
  if (is_weight && by.velocity != nullptr) {
    const float velocity = elementwise::next_velocity(by.velocity[i], sum, by.weights);
    by.velocity[i] = velocity;
    next = elementwise::nesterov_central(z, velocity, sum, by.weights);
  } else {
    next = elementwise::next_central(z, previous[i], sum, is_weight ? by.weights : by.statistics);
  }
  previous[i] = next;
  if (is_weight) tail.squared_sum += static_cast<double>(sum * sum);
  tail.non_finite_next += elementwise::count_non_finite(next);
}

template <std::size_t capacity>
__global__ void average(const VectorGroup<capacity> replicas, const float* central, float* previous,
                        const CentralMove by, const Extent of, BlockTail* tails) {
  BlockTail tail{};
  for (std::int64_t i = first_element(); i < of.elements; i += element_step()) {
    const bool is_weight = i < of.weights;
    const float z = central[i];
    const ElementSum added = add_differences(replicas, i, z);
    move_element(by, i, is_weight, z, added.sum, previous, tail);
    if (is_weight) tail.squared_distance += static_cast<double>(added.squares);
    tail.non_finite += elementwise::count_non_finite(added.sum);
  }
  tail = sum_of_block(tail);
  if (threadIdx.x == 0) tails[blockIdx.x] = tail;
}

// Does nothing where the tail counts an element of S that is not finite.
__global__ void update_central(const float* central, float* previous, const float* sum, const CentralMove by,
                               const Extent of, BlockTail* tails) {
  BlockTail tail{};
  if (sum[of.elements + kNonFiniteCount] == 0.0F) {
    for (std::int64_t i = first_element(); i < of.elements; i += element_step()) {
      move_element(by, i, i < of.weights, central[i], sum[i], previous, tail);
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
    tail.squared_sum += tails[i].squared_sum;
    tail.non_finite += tails[i].non_finite;
    tail.non_finite_next += tails[i].non_finite_next;
  }
  return sum_of_block(tail);
}

__global__ void store_tail(const BlockTail* tails, std::int64_t count, float* target) {
  const BlockTail tail = sum_of_tails(tails, count);
  if (threadIdx.x != 0) return;
  const bool is_finite = tail.non_finite == 0;
  target[kNonFiniteCount] = static_cast<float>(is_finite ? tail.non_finite_next : tail.non_finite);
  target[kSquaredDistance] = static_cast<float>(tail.squared_distance);
  target[kSquaredSum] = is_finite ? static_cast<float>(tail.squared_sum) : 0.0F;
}

// Finite differences of several devices may still add up to infinity; every device sees the same sum.
__global__ void update_tail(const BlockTail* tails, std::int64_t count, float* target) {
  const BlockTail tail = sum_of_tails(tails, count);
  if (threadIdx.x != 0 || target[kNonFiniteCount] != 0.0F) return;
  target[kNonFiniteCount] = static_cast<float>(tail.non_finite_next);
  target[kSquaredSum] = static_cast<float>(tail.squared_sum);
}

__global__ void keep_central(const float* non_finite, const float* central, float* previous, std::int64_t elements) {
  if (*non_finite == 0.0F) return;
  for (std::int64_t i = first_element(); i < elements; i += element_step()) previous[i] = central[i];
}

}  // namespace

void run_flat(const ReplicaDifference& task, const StreamContext& context) {
  const std::int64_t blocks = blocks_for(task.elements);
  with_group(task.replicas, [&]<std::size_t capacity>(const VectorGroup<capacity>& replicas) {
    launch(sum_differences<capacity>, blocks, context.stream, replicas, task.central, task.sum, extent_of(task),
           block_tails(context));
  });
  launch(store_tail, 1, context.stream, block_tails(context), blocks, task.sum + task.elements);
}

void run_flat(const CentralUpdate& task, const StreamContext& context) {
  const std::int64_t blocks = blocks_for(task.elements);
  float* tail = task.sum + task.elements;
  launch(update_central, blocks, context.stream, task.central, task.previous, task.sum, move_by(task.by),
         extent_of(task), block_tails(context));
  launch(update_tail, 1, context.stream, block_tails(context), blocks, tail);
  launch(keep_central, blocks, context.stream, tail + kNonFiniteCount, task.central, task.previous, task.elements);
}

void run_flat(const LocalAveraging& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.replicas.empty());
  const std::int64_t blocks = blocks_for(task.elements);
  with_group(task.replicas, [&]<std::size_t capacity>(const VectorGroup<capacity>& replicas) {
    launch(average<capacity>, blocks, context.stream, replicas, task.central, task.previous, move_by(task.by),
           extent_of(task), block_tails(context));
  });
  launch(store_tail, 1, context.stream, block_tails(context), blocks, task.tail);
  launch(keep_central, blocks, context.stream, task.tail + kNonFiniteCount, task.central, task.previous, task.elements);
}

}  // namespace arbalest::engine::cuda
