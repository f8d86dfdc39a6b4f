// A learner's step as one CUDA graph.
#pragma once

#include <cstddef>
#include <string>

#include <cuda_runtime.h>

#include "engine/cuda/runtime/check.h"
#include "engine/cuda/runtime/handle.h"
#include "engine/cuda/runtime/stream.h"
#include "engine/stream_observer.h"

namespace arbalest::bench {

// Finds the stream of the only learner.
class StreamFinder final : public engine::StreamObserver {
 public:
  void before_task(const engine::Stream& stream, const engine::TaskInfo&) override {
    // An observer gets a const stream, but the caller captures this one.
    if (stream.role() == engine::StreamRole::kLearner) {
      learner = &engine::cuda::as_cuda(const_cast<engine::Stream&>(stream));
    }
  }
  void after_task(const engine::Stream&, const engine::TaskInfo&) override {}

  engine::cuda::CudaStream* learner = nullptr;
};

// The work of one learner on its stream for one step, as one CUDA graph.
class StepGraph {
 public:
  // Captures the work that `enqueue` enqueues on the stream.
  template <typename Function>
  StepGraph(engine::cuda::CudaStream& stream, const Function& enqueue) : stream_(stream) {
    engine::cuda::Handle<cudaGraph_t, cudaGraphDestroy> graph;
    with_stream([](cudaStream_t on) { ARBALEST_CUDA(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal)); });
    enqueue();
    with_stream([&](cudaStream_t on) { ARBALEST_CUDA(cudaStreamEndCapture(on, graph.put())); });
    ARBALEST_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &nodes_));
    ARBALEST_CUDA(cudaGraphInstantiate(executable_.put(), graph.get(), 0));
  }

  std::size_t nodes() const { return nodes_; }

  void replay(int times) {
    with_stream([&](cudaStream_t on) {
      for (int i = 0; i < times; ++i) ARBALEST_CUDA(cudaGraphLaunch(executable_.get(), on));
    });
    stream_.drain();
  }

 private:
  template <typename Function>
  void with_stream(const Function& function) {
    stream_.submit("graph", [&](const engine::cuda::StreamContext& context) { function(context.stream.handle); });
  }

  engine::cuda::CudaStream& stream_;
  std::size_t nodes_ = 0;
  engine::cuda::Handle<cudaGraphExec_t, cudaGraphExecDestroy> executable_;
};

}  // namespace arbalest::bench
