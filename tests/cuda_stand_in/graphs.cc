// Captures of streams, and the captured graphs.
#include <cuda_runtime_api.h>

#include <algorithm>

#include <fmt/format.h>

#include "tests/cuda_stand_in/call.h"
#include "tests/cuda_stand_in/memory.h"
#include "tests/cuda_stand_in/streams.h"

namespace arbalest::tests::cuda_stand_in {

namespace {

// Device memory of an executable graph. The real figures are not documented. These are at least as large as a node's
// parameters.
constexpr std::size_t kGraphBytes = 4096;
constexpr std::size_t kNodeBytes = 1024;

// Whether every node precedes the end of the stream that began the capture.
bool is_joined(const Capture& capture) {
  std::vector<bool> reached(capture.nodes.size(), false);
  std::vector<std::size_t> front = capture.origin->last_nodes;
  while (!front.empty()) {
    const std::size_t node = front.back();
    front.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    front.insert(front.end(), capture.nodes[node].after.begin(), capture.nodes[node].after.end());
  }
  return std::ranges::all_of(reached, [](bool node) { return node; });
}

cudaError_t begin(cudaStream_t handle, cudaStreamCaptureMode mode) {
  CUstream_st* stream = find_stream(handle, "cudaStreamBeginCapture");
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (handle == nullptr || handle == cudaStreamLegacy) {
    violation("cudaStreamBeginCapture: of the legacy stream");
    return cudaErrorStreamCaptureUnsupported;
  }
  if (stream->capture != nullptr) {
    return spoil(*stream->capture, cudaErrorIllegalState, "cudaStreamBeginCapture", "of a stream being captured");
  }
  if (mode != cudaStreamCaptureModeThreadLocal) {
    // The global mode also forbids other threads calls that they may need, and the relaxed mode forbids too little.
    violation("cudaStreamBeginCapture: the mode is not cudaStreamCaptureModeThreadLocal");
  }
  auto capture = std::make_unique<Capture>();
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  stream->capture = capture.get();
  stream->last_nodes.clear();
  state().captures.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t end(cudaStream_t handle, cudaGraph_t* graph) {
  CUstream_st* stream = find_stream(handle, "cudaStreamEndCapture");
  if (stream == nullptr || stream->capture == nullptr) return cudaErrorIllegalState;
  Capture& capture = *stream->capture;
  if (capture.thread != std::this_thread::get_id()) {
    return spoil(capture, cudaErrorStreamCaptureWrongThread, "cudaStreamEndCapture", "by another thread");
  }
  if (capture.origin != stream) {
    return spoil(capture, cudaErrorStreamCaptureUnmatched, "cudaStreamEndCapture", "of a stream that joined later");
  }
  const bool joined = is_joined(capture);
  capture.active = false;
  for (CUstream_st* other : state().streams) {
    if (other->capture != &capture) continue;
    other->capture = nullptr;
    other->last_nodes.clear();
  }
  if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) {
    violation("cudaStreamEndCapture: work of other streams has not been joined to the stream");
    return cudaErrorStreamCaptureUnjoined;
  }
  *graph = make_handle<CUgraph_st>("graph");
  (*graph)->nodes = std::move(capture.nodes);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", InCapture::kLegal, [&](Thread&) { return begin(stream, mode); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  return call("cudaStreamEndCapture", InCapture::kLegal, [&](Thread&) { return end(stream, graph); });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", InCapture::kIllegal, [&](Thread& thread) {
    if (!is_alive(graph, "graph", "cudaGraphInstantiate")) return cudaErrorInvalidValue;
    const std::size_t bytes = kGraphBytes + graph->nodes.size() * kNodeBytes;
    if (!take_elsewhere(thread.device, bytes)) return cudaErrorMemoryAllocation;
    *executable = make_handle<CUgraphExec_st>("executable graph");
    (*executable)->bytes = bytes;
    (*executable)->device = thread.device;
    state().nodes_of_graphs.push_back(graph->nodes.size());
    (*executable)->nodes = std::make_shared<const std::vector<Node>>(graph->nodes);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  return call("cudaGraphUpload", InCapture::kIllegal, [&](Thread&) {
    if (!is_alive(executable, "executable graph", "cudaGraphUpload")) return cudaErrorInvalidValue;
    CUstream_st* stream = find_stream(handle, "cudaGraphUpload");
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    return enqueue(*stream, make_work("cudaGraphUpload", {}, [] {}), "cudaGraphUpload");
  });
}

// Two launches of one graph never overlap.
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  return call("cudaGraphLaunch", InCapture::kLegal, [&](Thread&) {
    CUstream_st* stream = find_stream(handle, "cudaGraphLaunch");
    if (stream == nullptr || !is_alive(executable, "executable graph", "cudaGraphLaunch")) {
      return cudaErrorInvalidResourceHandle;
    }
    if (stream->capture != nullptr) {
      return spoil(*stream->capture, cudaErrorStreamCaptureUnsupported, "cudaGraphLaunch", "in a capture");
    }
    const Position last = executable->last_launch;
    if (last.stream != nullptr && last.stream != stream) append(*stream, make_wait(last));
    const cudaError_t result = enqueue(*stream, make_graph_run(executable->nodes), "cudaGraphLaunch");
    if (result == cudaSuccess) executable->last_launch = {stream, stream->enqueued};
    return result;
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return call("cudaGraphDestroy", InCapture::kLegal, [&](Thread&) {
    return end_handle(graph, "graph", "cudaGraphDestroy") ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return call("cudaGraphExecDestroy", InCapture::kLegal, [&](Thread&) {
    if (!end_handle(executable, "executable graph", "cudaGraphExecDestroy")) return cudaErrorInvalidValue;
    give_back_elsewhere(executable->device, executable->bytes);
    const Position last = executable->last_launch;
    if (last.stream != nullptr && last.stream->completed < last.number) {
      violation("cudaGraphExecDestroy: of a graph that was launched and has not ended");
    }
    return cudaSuccess;
  });
}

}  // extern "C"

}  // namespace arbalest::tests::cuda_stand_in
