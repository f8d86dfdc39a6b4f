#include "engine/elementwise/averaging.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "engine/cpu/flat_tasks.h"
#include "engine/cpu/parallel.h"
#include "engine/elementwise/finite.h"
#include "engine/error.h"

namespace arbalest::engine::cpu {

namespace {

using elementwise::CentralTerms;

// A vector is cut into this many chunks, however many threads there are, so that sums are added in one order. Within
// a chunk the replicas are summed block by block, while the block's z and sum stay in the first-level cache.
constexpr std::int64_t kChunks = 64;
constexpr std::int64_t kBlock = 2048;
constexpr std::int64_t kLanes = 16;

struct Tail {
  std::int64_t non_finite = 0;       // of S
  std::int64_t non_finite_next = 0;  // of z^{t+1}
  double squared_distance = 0.0;

  void add(const Tail& other) {
    non_finite += other.non_finite;
    non_finite_next += other.non_finite_next;
    squared_distance += other.squared_distance;
  }
};

// Replicas are read this many at a time: that many streams keep the memory busy.
constexpr std::size_t kGroup = 4;

// sum = (first ? 0 : sum) + sum_j (w_j - z), in order of j, over one block; returns the squares' sum. The replicas'
// addresses are those of the block.
template <std::size_t group, bool first>
double add_differences(const std::array<const float*, kGroup>& replicas, const float* __restrict central,
                       float* __restrict sum, std::int64_t count) {
  float lanes[kLanes] = {};
  const auto add = [&](std::int64_t i, std::int64_t lane) {
    const float z = central[i];
    float total = first ? 0.0F : sum[i];
    float squares = 0.0F;
    for (std::size_t j = 0; j < group; ++j) {
      const float difference = replicas[j][i] - z;
      total += difference;
      squares += difference * difference;
    }
    sum[i] = total;
    lanes[lane] += squares;
  };
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) add(i + lane, lane);
  }
  for (std::int64_t i = whole; i < count; ++i) add(i, i - whole);
  double squares = 0.0;
  for (const float lane : lanes) squares += static_cast<double>(lane);
  return squares;
}

using AddDifferences = double (*)(const std::array<const float*, kGroup>&, const float*, float*, std::int64_t);
template <bool first>
constexpr AddDifferences kAddDifferences[kGroup] = {add_differences<1, first>, add_differences<2, first>,
                                                    add_differences<3, first>, add_differences<4, first>};

// sum[0, count) = S[begin, begin + count); returns its part of the tail.
Tail difference_of_block(std::span<const float* const> replicas, const float* central, std::int64_t begin,
                         std::int64_t count, float* sum) {
  Tail tail;
  for (std::size_t j = 0; j < replicas.size(); j += kGroup) {
    const std::size_t group = std::min(kGroup, replicas.size() - j);
    std::array<const float*, kGroup> addresses{};
    for (std::size_t i = 0; i < group; ++i) addresses[i] = replicas[j + i] + begin;
    const AddDifferences add = j == 0 ? kAddDifferences<true>[group - 1] : kAddDifferences<false>[group - 1];
    tail.squared_distance += add(addresses, central + begin, sum, count);
  }
  std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
  for (std::int64_t i = 0; i < count; ++i) non_finite += elementwise::count_non_finite(sum[i]);
  tail.non_finite = non_finite;
  return tail;
}

// previous[i] = z^{t+1}[i] for i < count; returns how many are not finite.
std::int32_t update_central(const float* __restrict central, const float* __restrict sum, float* __restrict previous,
                            std::int64_t count, CentralTerms terms) {
  std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
  for (std::int64_t i = 0; i < count; ++i) {
    const float next = elementwise::next_central(central[i], previous[i], sum[i], terms);
    previous[i] = next;
    non_finite += elementwise::count_non_finite(next);
  }
  return non_finite;
}

// Calls body(begin, count) -> Tail for the blocks of [first, last), on `threads` threads; adds the tails up in one
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

// body(first, last, are_statistics) -> Tail, for the weights and for the statistics of a task, if it has any.
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

template <typename Task>
CentralTerms terms_of(const Task& task, bool are_statistics) {
  return are_statistics ? elementwise::statistics_terms(task.mean_factor)
                        : CentralTerms{task.alpha, task.central_momentum};
}

void store(const Tail& tail, float* target) {
  target[kNonFiniteCount] = static_cast<float>(tail.non_finite);
  target[kSquaredDistance] = static_cast<float>(tail.squared_distance);
}

}  // namespace

void run_flat(const ReplicaDifference& task, const TaskContext& context) {
  if (task.replicas.empty()) std::fill_n(task.sum, task.elements, 0.0F);
  const Tail tail = for_segments(task, [&](std::int64_t first, std::int64_t last, bool /*are_statistics*/) {
    return for_blocks(first, last, context.threads, [&](std::int64_t begin, std::int64_t count) {
      return difference_of_block(task.replicas, task.central, begin, count, task.sum + begin);
    });
  });
  store(tail, task.sum + task.elements);
}

void run_flat(const CentralUpdate& task, const TaskContext& context) {
  float& non_finite = task.sum[task.elements + kNonFiniteCount];
  if (non_finite == 0.0F) {
    const Tail tail = for_segments(task, [&](std::int64_t first, std::int64_t last, bool are_statistics) {
      const CentralTerms terms = terms_of(task, are_statistics);
      std::atomic<std::int32_t> total{0};
      for_ranges(context.threads, last - first, [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t at = first + begin;
        total += update_central(task.central + at, task.sum + at, task.previous + at, end - begin, terms);
      });
      return Tail{.non_finite_next = total};
    });
    // Finite differences of several devices may still add up to infinity; every device sees the same sum.
    non_finite = static_cast<float>(tail.non_finite_next);
  }
  if (non_finite != 0.0F) std::copy_n(task.central, task.elements, task.previous);
}

void run_flat(const LocalAveraging& task, const TaskContext& context) {
  ARBALEST_CHECK(!task.replicas.empty());
  Tail tail = for_segments(task, [&](std::int64_t first, std::int64_t last, bool are_statistics) {
    const CentralTerms terms = terms_of(task, are_statistics);
    return for_blocks(first, last, context.threads, [&](std::int64_t begin, std::int64_t count) {
      alignas(64) float sum[kBlock];
      Tail block = difference_of_block(task.replicas, task.central, begin, count, sum);
      block.non_finite_next = update_central(task.central + begin, sum, task.previous + begin, count, terms);
      return block;
    });
  });
  if (tail.non_finite == 0) tail.non_finite = tail.non_finite_next;
  if (tail.non_finite != 0) std::copy_n(task.central, task.elements, task.previous);
  store(tail, task.tail);
}

}  // namespace arbalest::engine::cpu
