#include "engine/shared_weights.h"

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "engine/cpu/passes/update_loops.h"
#include "engine/cpu/runtime/stream.h"
#include "engine/host/relaxed.h"

namespace arbalest::engine {

namespace cpu {
namespace {

using elementwise::StatisticStep;

// Compilers turn no loop of atomic operations into vector instructions. So a step copies a block, computes there with
// vectors, and copies the block back. A short block leaves others little time to change what this step then overwrites.
constexpr std::int64_t kBlock = 128;  // elements
using Block = std::array<float, kBlock>;

void load(float* shared, float* to, std::int64_t count) {
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < count; ++i) to[i] = host::load_relaxed(shared[i]);
}

void store(const float* from, float* shared, std::int64_t count) {
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < count; ++i) host::store_relaxed(shared[i], from[i]);
}

template <typename T>
T* advanced(T* vector, std::int64_t by) {
  return vector == nullptr ? nullptr : vector + by;
}

// Does what take_step does, on the shared vector task.weights.
template <typename Step>
std::int32_t take_shared_step(const WeightUpdate& task, std::int64_t begin, std::int64_t end, Step step) {
  alignas(64) Block weights;
  std::int32_t non_finite = 0;
  for (std::int64_t first = begin; first < end; first += kBlock) {
    const std::int64_t count = std::min(kBlock, end - first);
    WeightUpdate block{.weights = weights.data(),
                       .gradient = task.gradient + first,
                       .statistics = advanced(task.statistics, first),
                       .ranges = {},
                       .rule = {},
                       .step = task.step};
    for (std::size_t slot = 0; slot < kMaxStateSlots; ++slot) block.state[slot] = advanced(task.state[slot], first);
    load(task.weights + first, weights.data(), count);
    non_finite += take_step<false>(block, 0, count, step);
    store(weights.data(), task.weights + first, count);
  }
  return non_finite;
}

template <typename Step>
void run(const SharedUpdate& task, const typename Step::Options& options, int threads) {
  const WeightUpdate& update = task.update;
  *update.non_finite =
      sum_over_ranges<Step>(update, options, threads, {count_refused<Step>, count_refused<StatisticStep>});
  *task.staleness = static_cast<std::int64_t>(task.shared->steps.load(std::memory_order_relaxed) - *task.steps);
  if (*update.non_finite != 0) return;
  WeightUpdate shared = update;
  shared.weights = task.shared->values;
  sum_over_ranges<Step>(shared, options, threads, {take_shared_step<Step>, take_shared_step<StatisticStep>});
  const std::uint64_t before = task.shared->steps.fetch_add(1, std::memory_order_relaxed);
  *task.staleness = static_cast<std::int64_t>(before - *task.steps);
}

void run(const SharedCopy& task, int threads) {
  *task.steps = task.shared->steps.load(std::memory_order_relaxed);
  for_ranges(threads, task.elements, [&](std::int64_t begin, std::int64_t end) {
    load(task.shared->values + begin, task.weights + begin, end - begin);
  });
}

CpuStream& cpu_stream(Stream& stream) {
  auto* cpu = dynamic_cast<CpuStream*>(&stream);
  ARBALEST_CHECK(cpu != nullptr);  // the threads of one CPU device share memory
  return *cpu;
}

}  // namespace
}  // namespace cpu

void enqueue(Stream& stream, const SharedCopy& task, const char* label) {
  cpu::cpu_stream(stream).submit(
      cpu::make_task([task](const cpu::TaskContext& context) { cpu::run(task, context.threads); }), label);
}

void enqueue(Stream& stream, const SharedUpdate& task, const char* label) {
  ARBALEST_CHECK(task.update.references[0] == nullptr && task.update.rounded == nullptr);
  const auto run = [task](const cpu::TaskContext& context) {
    elementwise::with_step(task.update.rule, [&]<typename Kind>(Kind /*kind*/, const auto& options) {
      cpu::run<typename Kind::Type>(task, options, context.threads);
    });
  };
  cpu::cpu_stream(stream).submit(cpu::make_task(run), label);
}

}  // namespace arbalest::engine
