#include "bench/gpu/gpu_averaging.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/support/harness.h"
#include "engine/passes/averaging.h"

namespace arbalest::bench {

namespace {

constexpr int kAveragings = 64;  // per call; hides the time until the first one starts
constexpr int kTurns = 11;

std::size_t bytes_of(std::size_t elements) { return elements * sizeof(float); }

}  // namespace

AveragingSeconds time_averaging(const std::string& device, int learners, std::size_t elements) {
  const auto gpu = engine::open_device(engine::parse_device(device));
  std::vector<engine::Buffer> buffers;
  const auto take = [&](std::size_t count) { return buffers.emplace_back(gpu->allocate(bytes_of(count))).as<float>(); };
  std::vector<const float*> replicas;
  for (int j = 0; j < learners; ++j) replicas.push_back(take(elements));
  float* central[2] = {take(elements), take(elements)};
  float* sum = take(elements + engine::kAveragingTail);
  const auto stream = gpu->create_stream({.name = "averaging", .role = engine::StreamRole::kSynchronization});
  const auto count = static_cast<std::int64_t>(elements);
  const engine::CentralStep by{.step = 1.0F / static_cast<float>(learners),
                               .momentum = 0.9F,
                               .mean_factor = 1.0F / static_cast<float>(learners)};
  const auto run = [&](const auto& enqueue) {
    for (int i = 0; i < kAveragings; ++i) {
      enqueue();
      std::swap(central[0], central[1]);
    }
    stream->record().synchronize();
  };
  const std::vector<Contender> contenders{
      {"one device",
       [&] {
         run([&] {
           stream->enqueue(engine::LocalAveraging{replicas, central[0], central[1], sum + elements, by, count, 0},
                           "averaging");
         });
       }},
      {"several devices", [&] {
         run([&] {
           stream->enqueue(engine::ReplicaDifference{replicas, central[0], sum, count, 0}, "difference");
           stream->enqueue(engine::CentralUpdate{central[0], central[1], sum, by, count, 0}, "central update");
         });
       }}};
  const std::vector<Measurement> results = measure_in_turns(contenders, {.turns = kTurns, .seconds_per_turn = 0.02});
  return {results[0].seconds / kAveragings, results[1].seconds / kAveragings};
}

CopiedAllReduce::CopiedAllReduce(const std::string& device, std::size_t elements)
    : device_(engine::open_device(engine::parse_device(device))),
      bytes_(bytes_of(elements)),
      from_(device_->allocate(bytes_)),
      to_(device_->allocate(bytes_)) {}

void CopiedAllReduce::before_task(const engine::Stream& stream, const engine::TaskInfo& task) {
  if (copies_ || stream.role() != engine::StreamRole::kSynchronization) return;
  if (task.kind == engine::TaskKind::kPass) due_ = true;
  if (!due_ || task.kind != engine::TaskKind::kWait) return;  // the next round's first task is a wait
  due_ = false;
  copies_ = true;
  // An observer gets a const stream, but this one must enqueue on it.
  auto& on = const_cast<engine::Stream&>(stream);
  on.copy(to_.data(), from_.data(), bytes_, "what is sent");
  on.copy(from_.data(), to_.data(), bytes_, "what is received");
  copies_ = false;
}

}  // namespace arbalest::bench
