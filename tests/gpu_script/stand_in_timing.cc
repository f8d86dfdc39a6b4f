// Runtime calls that only benchmarks make. The stand-in has no clock, so a unit of work takes a microsecond.
#include <cuda_runtime_api.h>

#include "tests/cuda_stand_in/call.h"

using namespace arbalest::tests::cuda_stand_in;

extern "C" {

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call("cudaEventElapsedTime", InCapture::kIllegal, [&](Thread&) {
    if (!is_alive(start, "event", "cudaEventElapsedTime") || !is_alive(end, "event", "cudaEventElapsedTime")) {
      return cudaErrorInvalidResourceHandle;
    }
    for (const cudaEvent_t event : {start, end}) {
      if (!event->recorded) return cudaErrorInvalidResourceHandle;
      if (event->position.stream->completed < event->position.number) return cudaErrorNotReady;
    }
    const auto from = static_cast<double>(start->position.number);
    *milliseconds = static_cast<float>(1e-3 * (static_cast<double>(end->position.number) - from));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", InCapture::kLegal, [&](Thread&) {
    if (!is_alive(graph, "graph", "cudaGraphGetNodes")) return cudaErrorInvalidResourceHandle;
    if (nodes != nullptr) return cudaErrorNotSupported;  // the stand-in's nodes have no handles
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

}  // extern "C"
