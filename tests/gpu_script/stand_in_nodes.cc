// A call of the runtime that only benchmarks make.
#include <cuda_runtime_api.h>

#include "tests/cuda_stand_in/call.h"

using namespace arbalest::tests::cuda_stand_in;

extern "C" {

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", InCapture::kLegal, [&](Thread&) {
    if (!is_alive(graph, "graph", "cudaGraphGetNodes")) return cudaErrorInvalidResourceHandle;
    if (nodes != nullptr) return cudaErrorNotSupported;  // the stand-in's nodes have no handles
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

}  // extern "C"
