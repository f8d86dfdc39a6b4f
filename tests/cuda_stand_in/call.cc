#include "tests/cuda_stand_in/call.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/cuda_stand_in/executor.h"
#include "tests/cuda_stand_in/streams.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

// Makes the stream wait for the legacy stream, or the legacy stream for it, if it is without cudaStreamNonBlocking.
void order_with_legacy_stream(CUstream_st& stream) {
  CUstream_st* legacy = state().devices[static_cast<std::size_t>(stream.device)].legacy_stream;
  if (legacy == nullptr) return;
  for (CUstream_st* other : state().streams) {
    const bool ordered = other != &stream && other->device == stream.device && other->blocking &&
                         (&stream == legacy || (stream.blocking && other == legacy));
    if (ordered && other->completed < other->enqueued) append(stream, make_wait({other, other->enqueued}));
  }
}

// A program that is no test has nobody who asks for them.
void report_violations() {
  constexpr int kExitCode = 99;
  for (const std::string& text : violations()) std::fprintf(stderr, "stand-in: %s\n", text.c_str());
  if (!violations().empty()) std::_Exit(kExitCode);
}

}  // namespace

void start_runtime() {
  constexpr int kDefault = 8;
  constexpr int kMost = 32;
  if (state().hardware_queues.has_value()) return;
  const char* text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  if (std::getenv(kGpusVariable) != nullptr) std::atexit(report_violations);
  state().hardware_queues = text == nullptr ? kDefault : std::min(std::atoi(text), kMost);
}

cudaError_t check_call(const char* function, InCapture in_capture) {
  start_runtime();
  if (machine_problem() != cudaSuccess) return machine_problem();
  const cudaError_t failure = state().devices[static_cast<std::size_t>(this_thread().device)].failure;
  if (failure != cudaSuccess) return failure;
  if (in_capture == InCapture::kLegal || !thread_captures()) return cudaSuccess;
  violation(fmt::format("{}: called by a thread that is capturing a stream", function));
  invalidate_captures_of_thread();
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t call(const char* function, InCapture in_capture, const std::function<cudaError_t(Thread&)>& body) {
  const Lock lock;
  take_random_steps();
  const int injected = take_injected(function);
  if (injected != 0) return note(static_cast<cudaError_t>(injected));
  const cudaError_t problem = check_call(function, in_capture);
  return note(problem != cudaSuccess ? problem : body(this_thread()));
}

cudaError_t note(cudaError_t result) {
  // This includes cudaErrorNotReady. The CUDA programming guide ("Error Checking") says otherwise, but the runtime does
  // it.
  if (result != cudaSuccess) this_thread().last_error = result;
  return result;
}

cudaError_t machine_problem() {
  const Machine& machine = state().machine;
  const bool old = machine.driver_version / 1000 < CUDART_VERSION / 1000;  // minor versions are compatible
  if (old) return cudaErrorInsufficientDriver;
  return machine.devices == 0 ? cudaErrorNoDevice : cudaSuccess;
}

int take_injected(const char* function) {
  ++state().calls[function];
  std::vector<InjectedError>& injected = state().injected;
  int result = 0;
  for (InjectedError& error : injected) {
    if (error.function == function && error.after-- == 0) result = error.error;
  }
  std::erase_if(injected, [](const InjectedError& error) { return error.after < 0; });
  return result;
}

cudaError_t enqueue(CUstream_st& stream, std::shared_ptr<const Work> work, const char* function) {
  const Device& device = state().devices[static_cast<std::size_t>(stream.device)];
  if (device.failure != cudaSuccess) return device.failure;
  if (&stream == device.legacy_stream && thread_captures()) {
    violation(fmt::format("{}: work on the legacy stream by a thread that is capturing a stream", function));
    invalidate_captures_of_thread();
    return cudaErrorStreamCaptureImplicit;
  }
  ++state().enqueued_works;
  if (stream.capture == nullptr) {
    order_with_legacy_stream(stream);
    append(stream, std::move(work));
    return cudaSuccess;
  }
  if (!stream.capture->valid) return cudaErrorStreamCaptureInvalidated;
  std::vector<Node>& nodes = stream.capture->nodes;
  nodes.push_back({std::move(work), stream.last_nodes});
  stream.last_nodes = {nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t enqueue_of_library(CUstream_st& stream, std::shared_ptr<const Work> work, const char* function,
                               const std::string& kind, std::set<std::string>& warm) {
  const cudaError_t result = stream.capture != nullptr && !warm.contains(kind)
                                 ? spoil(*stream.capture, cudaErrorStreamCaptureUnsupported, function,
                                         "in a capture, the first of its kind: a library may load code or allocate")
                                 : enqueue(stream, std::move(work), function);
  if (result == cudaSuccess) warm.insert(kind);
  return result;
}

bool thread_captures() {
  return std::ranges::any_of(state().captures, [](const std::unique_ptr<Capture>& capture) {
    return capture->active && capture->thread == std::this_thread::get_id();
  });
}

void invalidate_captures_of_thread() {
  for (const std::unique_ptr<Capture>& capture : state().captures) {
    if (capture->active && capture->thread == std::this_thread::get_id()) capture->valid = false;
  }
}

bool spoils_captures_of_others(const char* function) {
  bool spoiled = false;
  for (const std::unique_ptr<Capture>& capture : state().captures) {
    if (!capture->active || capture->thread == std::this_thread::get_id()) continue;
    if (capture->origin->device != this_thread().device) continue;
    spoil(*capture, cudaErrorStreamCaptureUnsupported, function,
          "waits for a device of which another thread is capturing a stream");
    spoiled = true;
  }
  return spoiled;
}

cudaError_t spoil(Capture& capture, cudaError_t error, const char* function, const char* reason) {
  violation(fmt::format("{}: {}", function, reason));
  capture.valid = false;
  return error;
}

}  // namespace arbalest::tests::cuda_stand_in
