#include "engine/elementwise/averaging.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>

#include "engine/base/error.h"
#include "engine/cpu/passes/pairwise_blocks.h"
#include "engine/cpu/runtime/flat_tasks.h"
#include "engine/cpu/runtime/parallel.h"
#include "engine/elementwise/finite.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::CentralTerms;

// Number of chunks of a vector. It does not depend on the number of threads, so that sums are added in one order.
// Within a chunk the replicas are summed block by block, while the block's z and sum stay in the first-level cache.
constexpr std::int64_t kChunks = 64;
constexpr std::int64_t kBlock = kPairwiseBlock;
constexpr std::int64_t kLanes = 16;

struct Tail {
  std::int64_t non_finite = 0;       // of S
  std::int64_t non_finite_next = 0;  // of z^{t+1}
  double squared_distance = 0.0;     // sum_j |w_j - z|^2
  double squared_sum = 0.0;          // |S|^2

  void add(const Tail& other) {
    non_finite += other.non_finite;
    non_finite_next += other.non_finite_next;
    squared_distance += other.squared_distance;
    squared_sum += other.squared_sum;
  }
};

// Calls add(i, lane) for i in [0, count); neighboring i have neighboring lanes.
template <typename Add>
void for_lanes(std::int64_t count, const Add& add) {
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (std::int64_t i = whole; i < count; ++i) add(i, i - whole);
}

double sum_of_lanes(const float (&lanes)[kLanes]) {
  double sum = 0.0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

// sum = sum_j (w_j - z) over one block and a group of replicas, whose addresses are those of the block. Returns the sum
// of squares.
template <std::size_t group>
double add_differences(const GroupAddresses& replicas, const float* __restrict central, float* __restrict sum,
                       std::int64_t count) {
  float lanes[kLanes] = {};
  for_lanes(count, [&](std::int64_t i, std::int64_t lane) {
    std::array<float, kPairwiseGroup> differences{};
    float squares = 0.0F;
    for (std::size_t j = 0; j < group; ++j) {
      differences[j] = replicas[j][i] - central[i];
      squares += differences[j] * differences[j];
    }
    sum[i] = sum_of_group<group>(differences);
    lanes[lane] += squares;
  });
  return sum_of_lanes(lanes);
}

using AddDifferences = double (*)(const GroupAddresses&, const float*, float*, std::int64_t);
constexpr AddDifferences kAddDifferences[kPairwiseGroup] = {add_differences<1>, add_differences<2>, add_differences<3>,
                                                            add_differences<4>};

// sum[0, count) = S[begin, begin + count). Returns its part of the tail.
Tail difference_of_block(std::span<const float* const> replicas, const float* central, std::int64_t begin,
                         std::int64_t count, float* sum) {
  Tail tail;
  sum_pairwise(replicas.size(), count, sum, [&](std::size_t first, std::size_t size, float* target) {
    tail.squared_distance +=
        kAddDifferences[size - 1](group_addresses(replicas, first, size, begin), central + begin, target, count);
  });
  std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
  for (std::int64_t i = 0; i < count; ++i) non_finite += elementwise::count_non_finite(sum[i]);
  tail.non_finite = non_finite;
  return tail;
}

// Calls next(i), which writes z^{t+1}[i] and returns it, for i < count. Returns the block's part of the tail.
template <typename Next>
Tail move_elements(const float* __restrict sum, std::int64_t count, const Next& next) {
  float squares[kLanes] = {};
  std::int32_t non_finite[kLanes] = {};
  for_lanes(count, [&](std::int64_t i, std::int64_t lane) {
    squares[lane] += sum[i] * sum[i];
    non_finite[lane] += elementwise::count_non_finite(next(i));
  });
  return {.non_finite_next = std::reduce(std::begin(non_finite), std::end(non_finite), std::int64_t{0}),
          .squared_sum = sum_of_lanes(squares)};
}

Tail move_central(const float* __restrict central, const float* __restrict sum, float* __restrict previous,
                  std::int64_t count, CentralTerms terms) {
  return move_elements(sum, count, [&](std::int64_t i) {
    return previous[i] = elementwise::next_central(central[i], previous[i], sum[i], terms);
  });
}

Tail move_central_by_nesterov(const float* __restrict central, const float* __restrict sum, float* __restrict previous,
                              float* __restrict velocity, std::int64_t count, CentralTerms terms) {
  return move_elements(sum, count, [&](std::int64_t i) {
    velocity[i] = elementwise::next_velocity(velocity[i], sum[i], terms);
    return previous[i] = elementwise::nesterov_central(central[i], velocity[i], sum[i], terms);
  });
}

// Moves z over one block, given S there. Returns its part of the tail.
template <typename Task>
Tail move_block(const Task& task, const float* sum, std::int64_t begin, std::int64_t count, bool are_statistics) {
  const CentralStep& by = task.by;
  const float* central = task.central + begin;
  float* previous = task.previous + begin;
  if (are_statistics) {
    Tail tail = move_central(central, sum, previous, count, elementwise::statistics_terms(by.mean_factor));
    tail.squared_sum = 0.0;
    return tail;
  }
  const CentralTerms terms{by.step, by.momentum};
  return by.velocity == nullptr ? move_central(central, sum, previous, count, terms)
                                : move_central_by_nesterov(central, sum, previous, by.velocity + begin, count, terms);
}

// As difference_of_block() and move_block() by momentum, in one pass over at most kPairwiseGroup replicas: S stays in
// registers.
template <std::size_t group>
Tail average_group(const GroupAddresses& replicas, const float* __restrict central, float* __restrict previous,
                   std::int64_t count, CentralTerms terms) {
  float distances[kLanes] = {};
  float sums[kLanes] = {};
  std::int32_t non_finite[kLanes] = {};
  std::int32_t non_finite_next[kLanes] = {};
  for_lanes(count, [&](std::int64_t i, std::int64_t lane) {
    std::array<float, kPairwiseGroup> differences{};
    float squares = 0.0F;
    for (std::size_t j = 0; j < group; ++j) {
      differences[j] = replicas[j][i] - central[i];
      squares += differences[j] * differences[j];
    }
    const float sum = sum_of_group<group>(differences);
    const float next = elementwise::next_central(central[i], previous[i], sum, terms);
    previous[i] = next;
    distances[lane] += squares;
    sums[lane] += sum * sum;
    non_finite[lane] += elementwise::count_non_finite(sum);
    non_finite_next[lane] += elementwise::count_non_finite(next);
  });
  return {.non_finite = std::reduce(std::begin(non_finite), std::end(non_finite), std::int64_t{0}),
          .non_finite_next = std::reduce(std::begin(non_finite_next), std::end(non_finite_next), std::int64_t{0}),
          .squared_distance = sum_of_lanes(distances),
          .squared_sum = sum_of_lanes(sums)};
}

using AverageGroup = Tail (*)(const GroupAddresses&, const float*, float*, std::int64_t, CentralTerms);
constexpr AverageGroup kAverageGroup[kPairwiseGroup] = {average_group<1>, average_group<2>, average_group<3>,
                                                        average_group<4>};

// Averages one block of the replicas if no other device takes part. Returns its part of the tail.
Tail average_block(const LocalAveraging& task, std::int64_t begin, std::int64_t count, bool are_statistics) {
  const std::size_t replicas = task.replicas.size();
  if (replicas <= kPairwiseGroup && !are_statistics && task.by.velocity == nullptr) {
    return kAverageGroup[replicas - 1](group_addresses(task.replicas, 0, replicas, begin), task.central + begin,
                                       task.previous + begin, count, {task.by.step, task.by.momentum});
  }
  alignas(64) float sum[kBlock];
  Tail tail = difference_of_block(task.replicas, task.central, begin, count, sum);
  tail.add(move_block(task, sum, begin, count, are_statistics));
  return tail;
}

// Calls body(begin, count) -> Tail for the blocks of [first, last) on `threads` threads, and adds the tails in one
// order.
template <typename Body>
Tail for_blocks(std::int64_t first, std::int64_t last, int threads, const Body& body) {
  std::array<Tail, kChunks> tails;
  const std::int64_t chunk = ((last - first + kChunks - 1) / kChunks + kLanes - 1) / kLanes * kLanes;
  for_each_part(threads, kChunks, [&](std::int64_t i) {
    const std::int64_t end = std::min(last, first + (i + 1) * chunk);
    for (std::int64_t begin = first + i * chunk; begin < end; begin += kBlock) {
      tails[static_cast<std::size_t>(i)].add(body(begin, std::min(kBlock, end - begin)));
    }
  });
  Tail total;
  for (const Tail& tail : tails) total.add(tail);
  return total;
}

// Calls body(first, last, are_statistics) -> Tail for a task's weights and, if there are any, its statistics.
template <typename Task, typename Body>
Tail for_segments(const Task& task, const Body& body) {
  const std::int64_t weights = task.elements - task.statistics;
  Tail tail = body(0, weights, false);
  if (task.statistics == 0) return tail;
  Tail of_statistics = body(weights, task.elements, true);
  of_statistics.squared_distance = 0.0;
  tail.add(of_statistics);
  return tail;
}

void store(const Tail& tail, float* target) {
  target[kNonFiniteCount] = static_cast<float>(tail.non_finite);
  target[kSquaredDistance] = static_cast<float>(tail.squared_distance);
  target[kSquaredSum] = static_cast<float>(tail.squared_sum);
}

}  // namespace

void run_flat(const ReplicaDifference& task, const TaskContext& context) {
  if (task.replicas.empty()) {
    std::fill_n(task.sum, task.elements + kAveragingTail, 0.0F);
    return;
  }
  const Tail tail = for_segments(task, [&](std::int64_t first, std::int64_t last, bool /*are_statistics*/) {
    return for_blocks(first, last, context.threads, [&](std::int64_t begin, std::int64_t count) {
      return difference_of_block(task.replicas, task.central, begin, count, task.sum + begin);
    });
  });
  store(tail, task.sum + task.elements);
}

void run_flat(const CentralUpdate& task, const TaskContext& context) {
  float* tail_of_sum = task.sum + task.elements;
  float& non_finite = tail_of_sum[kNonFiniteCount];
  if (non_finite == 0.0F) {
    const Tail tail = for_segments(task, [&](std::int64_t first, std::int64_t last, bool are_statistics) {
      return for_blocks(first, last, context.threads, [&](std::int64_t begin, std::int64_t count) {
        return move_block(task, task.sum + begin, begin, count, are_statistics);
      });
    });
    // Finite differences of several devices may still add up to infinity. Every device sees the same sum.
    non_finite = static_cast<float>(tail.non_finite_next);
    tail_of_sum[kSquaredSum] = static_cast<float>(tail.squared_sum);
  }
  if (non_finite != 0.0F) std::copy_n(task.central, task.elements, task.previous);
}

void run_flat(const LocalAveraging& task, const TaskContext& context) {
  ARBALEST_CHECK(!task.replicas.empty());
  Tail tail = for_segments(task, [&](std::int64_t first, std::int64_t last, bool are_statistics) {
    return for_blocks(first, last, context.threads, [&](std::int64_t begin, std::int64_t count) {
      return average_block(task, begin, count, are_statistics);
    });
  });
  if (tail.non_finite == 0) {
    tail.non_finite = tail.non_finite_next;
  } else {
    tail.squared_sum = 0.0;
  }
  if (tail.non_finite != 0) std::copy_n(task.central, task.elements, task.previous);
  store(tail, task.tail);
}

void run_flat(const VectorMean& task, const TaskContext& context) {
  ARBALEST_CHECK(!task.vectors.empty());
  for_ranges(context.threads, task.elements, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first; begin < last; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, last - begin);
      float* __restrict mean = task.mean + begin;
      sum_vectors(task.vectors, task.offset + begin, count, mean);
#pragma omp simd
      for (std::int64_t i = 0; i < count; ++i) mean[i] *= task.factor;
    }
  });
}

}  // namespace arbalest::engine::cpu
