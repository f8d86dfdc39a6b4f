#include "engine/elementwise/averaging.h"

#include "engine/base/error.h"
#include "engine/cuda/kernels/block.h"
#include "engine/cuda/kernels/last_block.h"
#include "engine/cuda/kernels/vector_group.h"
#include "engine/cuda/kernels/wide.h"
#include "engine/cuda/runtime/flat_tasks.h"
#include "engine/elementwise/finite.h"

namespace arbalest::engine::cuda {

namespace {

using elementwise::CentralTerms;

// One block's contribution to the tail.
struct BlockTail {
  double squared_distance;
  double squared_sum;
  std::int32_t non_finite;       // of S
  std::int32_t non_finite_next;  // of z^{t+1}
};
static_assert(sizeof(BlockTail) * kMaxBlocks <= sizeof(float) * kPartials);

// All threads of the block must call this.
__device__ BlockTail sum_of_block(const BlockTail& of_thread) {
  return {block_sum(of_thread.squared_distance), block_sum(of_thread.squared_sum), block_sum(of_thread.non_finite),
          block_sum(of_thread.non_finite_next)};
}

// Sums over the replicas of one group of elements: S, and the squared differences.
template <int kNumbers>
struct GroupSum {
  Floats<kNumbers> sum;
  Floats<kNumbers> squares;
};

template <int kNumbers, std::size_t capacity>
__device__ GroupSum<kNumbers> add_differences(const VectorGroup<capacity>& replicas, std::int64_t group,
                                              const Floats<kNumbers>& central) {
  Floats<kNumbers> squares{};
  const auto sum = elementwise::pairwise_sum<VectorGroup<capacity>::kLevels>(replicas.count, [&](std::int32_t j) {
    Floats<kNumbers> difference = load_group<kNumbers>(replicas.addresses[j], group);
    for (int n = 0; n < kNumbers; ++n) {
      difference.at[n] -= central.at[n];
      squares.at[n] += difference.at[n] * difference.at[n];
    }
    return difference;
  });
  return {sum, squares};
}

// Number of elements (weights, then statistics), and number of weights.
struct Extent {
  std::int64_t elements;
  std::int64_t weights;
};

template <typename Task>
Extent extent_of(const Task& task) {
  return {task.elements, task.elements - task.statistics};
}

// Device memory through which the blocks of a kernel combine their tails.
struct BlockTails {
  BlockTail* tails;    // [blocks]
  unsigned* arrivals;  // zero between kernels
};

BlockTails block_tails(const StreamContext& context) {
  return {reinterpret_cast<BlockTail*>(context.partials), context.arrivals};
}

// Adds up the tails of all threads. Returns true in the last block to finish; all its threads get the sum. All threads
// must call this.
__device__ bool sum_tails(BlockTail& tail, const BlockTails& of) {
  tail = sum_of_block(tail);
  if (threadIdx.x == 0) of.tails[blockIdx.x] = tail;
  if (!is_last_block(of.arrivals, gridDim.x)) return false;
  tail = BlockTail{};
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kThreads) {
    const volatile BlockTail& found = of.tails[block];
    tail.squared_distance += found.squared_distance;
    tail.squared_sum += found.squared_sum;
    tail.non_finite += found.non_finite;
    tail.non_finite_next += found.non_finite_next;
  }
  tail = sum_of_block(tail);
  return true;
}

// Called by one thread.
__device__ void store_tail(const BlockTail& tail, float* target) {
  const bool is_finite = tail.non_finite == 0;
  target[kNonFiniteCount] = static_cast<float>(is_finite ? tail.non_finite_next : tail.non_finite);
  target[kSquaredDistance] = static_cast<float>(tail.squared_distance);
  target[kSquaredSum] = is_finite ? static_cast<float>(tail.squared_sum) : 0.0F;
}

// sum = sum_j (w_j - z)
template <std::size_t capacity>
__device__ void sum_differences(const VectorGroup<capacity>& replicas, const float* central, float* sum,
                                const Extent of, const BlockTails tails) {
  BlockTail tail{};
  for_groups<kWideFloats>(of.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    const auto added = add_differences(replicas, group, load_group<kNumbers>(central, group));
    store_group(added.sum, sum, group);
    for (int n = 0; n < kNumbers; ++n) {
      if (group * kNumbers + n < of.weights) tail.squared_distance += static_cast<double>(added.squares.at[n]);
      tail.non_finite += elementwise::count_non_finite(added.sum.at[n]);
    }
  });
  if (sum_tails(tail, tails) && threadIdx.x == 0) store_tail(tail, sum + of.elements);
}

// The terms by which weights and statistics move.
struct CentralMove {
  CentralTerms weights;
  CentralTerms statistics;
  float* velocity;  // velocity of the weights; null: the heavy-ball rule
};

CentralMove move_by(const CentralStep& step) {
  return {{step.step, step.momentum}, elementwise::statistics_terms(step.mean_factor), step.velocity};
}

// previous = z^{t+1} for one group, given its z and S. Adds squared_sum and non_finite_next to the tail.
template <int kNumbers>
__device__ void move_group(const CentralMove& by, std::int64_t group, const Extent& of, const Floats<kNumbers>& z,
                           const Floats<kNumbers>& sum, float* previous, BlockTail& tail) {
  Floats<kNumbers> next = load_group<kNumbers>(previous, group);
  for (int n = 0; n < kNumbers; ++n) {
    const std::int64_t i = group * kNumbers + n;
    const bool is_weight = i < of.weights;
    if (is_weight && by.velocity != nullptr) {
      const float velocity = elementwise::next_velocity(by.velocity[i], sum.at[n], by.weights);
      by.velocity[i] = velocity;
      next.at[n] = elementwise::nesterov_central(z.at[n], velocity, sum.at[n], by.weights);
    } else {
      next.at[n] = elementwise::next_central(z.at[n], next.at[n], sum.at[n], is_weight ? by.weights : by.statistics);
    }
    if (is_weight) tail.squared_sum += static_cast<double>(sum.at[n] * sum.at[n]);
    tail.non_finite_next += elementwise::count_non_finite(next.at[n]);
  }
  store_group(next, previous, group);
}

// previous = z, by the threads of one block. This is rare: training has diverged.
__device__ void keep_central(const float* central, float* previous, std::int64_t elements) {
  for (std::int64_t i = threadIdx.x; i < elements; i += kThreads) previous[i] = central[i];
}

template <std::size_t capacity>
__device__ void average(const VectorGroup<capacity>& replicas, const float* central, float* previous,
                        const CentralMove by, const Extent of, const BlockTails tails, float* target) {
  BlockTail tail{};
  for_groups<kWideFloats>(of.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
    const Floats<kNumbers> z = load_group<kNumbers>(central, group);
    const auto added = add_differences(replicas, group, z);
    move_group(by, group, of, z, added.sum, previous, tail);
    for (int n = 0; n < kNumbers; ++n) {
      if (group * kNumbers + n < of.weights) tail.squared_distance += static_cast<double>(added.squares.at[n]);
      tail.non_finite += elementwise::count_non_finite(added.sum.at[n]);
    }
  });
  if (!sum_tails(tail, tails)) return;
  if (threadIdx.x == 0) store_tail(tail, target);
  if (tail.non_finite + tail.non_finite_next != 0) keep_central(central, previous, of.elements);
}

// Keeps z if the tail counts an element of S that is not finite. Finite differences of several devices may still add up
// to infinity; every device sees the same sum.
__device__ void update_central(const float* central, float* previous, float* sum, const CentralMove by, const Extent of,
                               const BlockTails tails) {
  float* const target = sum + of.elements;
  const bool is_finite = target[kNonFiniteCount] == 0.0F;
  BlockTail tail{};
  if (is_finite) {
    for_groups<kWideFloats>(of.elements, [&]<int kNumbers>(std::integral_constant<int, kNumbers>, std::int64_t group) {
      move_group(by, group, of, load_group<kNumbers>(central, group), load_group<kNumbers>(sum, group), previous, tail);
    });
  }
  if (!sum_tails(tail, tails)) return;
  if (is_finite && threadIdx.x == 0) {
    target[kNonFiniteCount] = static_cast<float>(tail.non_finite_next);
    target[kSquaredSum] = static_cast<float>(tail.squared_sum);
  }
  if (!is_finite || tail.non_finite_next != 0) keep_central(central, previous, of.elements);
}

}  // namespace

void run_flat(const ReplicaDifference& task, const StreamContext& context) {
  with_group(task.replicas, [&]<std::size_t capacity>(const VectorGroup<capacity>& replicas) {
    launch<sum_differences<capacity>>(blocks_for_groups<kWideFloats>(task.elements), context.stream, replicas,
                                      task.central, task.sum, extent_of(task), block_tails(context));
  });
}

void run_flat(const CentralUpdate& task, const StreamContext& context) {
  launch<update_central>(blocks_for_groups<kWideFloats>(task.elements), context.stream, task.central, task.previous,
                         task.sum, move_by(task.by), extent_of(task), block_tails(context));
}

void run_flat(const LocalAveraging& task, const StreamContext& context) {
  ARBALEST_CHECK(!task.replicas.empty());
  with_group(task.replicas, [&]<std::size_t capacity>(const VectorGroup<capacity>& replicas) {
    launch<average<capacity>>(blocks_for_groups<kWideFloats>(task.elements), context.stream, replicas, task.central,
                              task.previous, move_by(task.by), extent_of(task), block_tails(context), task.tail);
  });
}

}  // namespace arbalest::engine::cuda
