#include "tests/cuda_stand_in/executor.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/state.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

constexpr auto kLongestWait = std::chrono::seconds(120);  // for other host threads and processes

Device& device_of(const CUstream_st& stream) { return state().devices[static_cast<std::size_t>(stream.device)]; }

bool can_step(const CUstream_st& stream) {
  if (stream.queue.empty() || device_of(stream).failure != cudaSuccess) return false;
  const CUstream_st::Entry& next = stream.queue.front();
  return next.execution == nullptr || next.execution->can_step();
}

// Picks a random stream by weight. Weights differ, so some streams are much slower than others.
CUstream_st* pick_stream() {
  std::size_t total = 0;
  for (const CUstream_st* stream : state().streams) {
    if (can_step(*stream)) total += static_cast<std::size_t>(stream->weight);
  }
  if (total == 0) return nullptr;
  std::size_t place = random_below(total);
  for (CUstream_st* stream : state().streams) {
    if (!can_step(*stream)) continue;
    const auto weight = static_cast<std::size_t>(stream->weight);
    if (place < weight) return stream;
    place -= weight;
  }
  return nullptr;
}

std::string waiting_works() {
  std::string text;
  for (const CUstream_st* stream : state().streams) {
    if (stream->queue.empty()) continue;
    text += fmt::format("{}{} (device {})", text.empty() ? "" : ", ", stream->queue.front().work->name, stream->device);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

bool take_step() {
  CUstream_st* stream = pick_stream();
  if (stream == nullptr) return false;
  const DeviceAccess access;
  CUstream_st::Entry& next = stream->queue.front();
  if (next.execution == nullptr) {
    next.execution = next.work->start(*stream);
    if (!next.execution->can_step()) return true;  // the start was the step
  }
  if (next.execution->step()) {
    stream->queue.pop_front();
    ++stream->completed;
  }
  return true;
}

void take_random_steps() {
  while (static_cast<int>(random_below(4)) < state().eagerness && take_step()) {
  }
}

namespace {

// Whether what another host thread or another process does may let a stream continue.
bool may_go_on() {
  return std::ranges::any_of(state().streams, [](const CUstream_st* stream) {
    return !stream->queue.empty() && stream->queue.front().execution != nullptr &&
           stream->queue.front().execution->waits_for_others();
  });
}

}  // namespace

cudaError_t run_until(const std::function<bool()>& done, int device, const char* function) {
  const cudaError_t& failure = state().devices[static_cast<std::size_t>(device)].failure;
  const auto begin = std::chrono::steady_clock::now();
  while (failure == cudaSuccess && !done()) {
    if (take_step()) continue;
    if (may_go_on() && std::chrono::steady_clock::now() - begin < kLongestWait) {
      let_others_run();
      continue;
    }
    violation(fmt::format("{}: waits for ever; the streams wait at: {}", function, waiting_works()));
    return cudaErrorLaunchTimeout;
  }
  return failure;
}

bool fails_now(int device) {
  std::vector<InjectedError>& injected = state().injected_executions;
  bool fails = false;
  for (InjectedError& error : injected) {
    if (error.after-- != 0) continue;
    state().devices[static_cast<std::size_t>(device)].failure = static_cast<cudaError_t>(error.error);
    fails = true;
  }
  std::erase_if(injected, [](const InjectedError& error) { return error.after < 0; });
  return fails;
}

}  // namespace arbalest::tests::cuda_stand_in
