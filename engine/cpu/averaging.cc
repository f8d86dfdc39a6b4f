#include "engine/elementwise/averaging.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "engine/cpu/flat_tasks.h"
#include "engine/cpu/parallel.h"
#include "engine/elementwise/finite.h"

namespace arbalest::engine::cpu {

namespace {

// A vector is cut into this many chunks, however many threads there are, so that sums are added in one order. Within
// a chunk the replicas are summed block by block, while the block's z and sum stay in the first-level cache.
constexpr std::int64_t kChunks = 64;
constexpr std::int64_t kBlock = 2048;
constexpr std::int64_t kLanes = 16;

struct Tail {
  std::int64_t non_finite = 0;
  double squared_distance = 0.0;
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

Tail difference_of_chunk(const ReplicaDifference& task, std::int64_t begin, std::int64_t end) {
  Tail tail;
  for (std::int64_t block = begin; block < end; block += kBlock) {
    const std::int64_t count = std::min(kBlock, end - block);
    float* sum = task.sum + block;
    for (std::size_t j = 0; j < task.replicas.size(); j += kGroup) {
      const std::size_t group = std::min(kGroup, task.replicas.size() - j);
      std::array<const float*, kGroup> replicas{};
      for (std::size_t i = 0; i < group; ++i) replicas[i] = task.replicas[j + i] + block;
      const AddDifferences add = j == 0 ? kAddDifferences<true>[group - 1] : kAddDifferences<false>[group - 1];
      tail.squared_distance += add(replicas, task.central + block, sum, count);
    }
    std::int32_t non_finite = 0;
#pragma omp simd reduction(+ : non_finite)
    for (std::int64_t i = 0; i < count; ++i) non_finite += elementwise::count_non_finite(sum[i]);
    tail.non_finite += non_finite;
  }
  return tail;
}

}  // namespace

void run_flat(const ReplicaDifference& task, const TaskContext& context) {
  if (task.replicas.empty()) std::fill_n(task.sum, task.elements, 0.0F);
  std::array<Tail, kChunks> tails;
  const std::int64_t chunk = ((task.elements + kChunks - 1) / kChunks + kLanes - 1) / kLanes * kLanes;
  for_each_part(context.threads, kChunks, [&](std::int64_t i) {
    const std::int64_t begin = std::min(task.elements, i * chunk);
    tails[static_cast<std::size_t>(i)] = difference_of_chunk(task, begin, std::min(task.elements, begin + chunk));
  });
  Tail total;
  for (const Tail& tail : tails) {
    total.non_finite += tail.non_finite;
    total.squared_distance += tail.squared_distance;
  }
  task.sum[task.elements + kNonFiniteCount] = static_cast<float>(total.non_finite);
  task.sum[task.elements + kSquaredDistance] = static_cast<float>(total.squared_distance);
}

void run_flat(const CentralUpdate& task, const TaskContext& context) {
  float& non_finite = task.sum[task.elements + kNonFiniteCount];
  if (non_finite == 0.0F) {
    std::atomic<std::int32_t> total{0};
    for_ranges(context.threads, task.elements, [&](std::int64_t begin, std::int64_t end) {
      const float* __restrict central = task.central;
      const float* __restrict sum = task.sum;
      float* __restrict previous = task.previous;
      const float alpha = task.alpha;
      const float central_momentum = task.central_momentum;
      std::int32_t count = 0;
#pragma omp simd reduction(+ : count)
      for (std::int64_t i = begin; i < end; ++i) {
        const float next = elementwise::next_central(central[i], previous[i], sum[i], alpha, central_momentum);
        previous[i] = next;
        count += elementwise::count_non_finite(next);
      }
      total += count;
    });
    // Finite differences of several devices may still add up to infinity; every device sees the same sum.
    non_finite = static_cast<float>(total);
  }
  if (non_finite != 0.0F) std::copy_n(task.central, task.elements, task.previous);
}

}  // namespace arbalest::engine::cpu
