// Measures with the GPU's clock when the steps of learners begin and end. Does one host thread keep every stream busy?
#pragma once

#include <map>
#include <vector>

#include <cuda_runtime.h>

#include "engine/cuda/runtime/handle.h"
#include "engine/stream_observer.h"

namespace arbalest::bench {

class StepClock final : public engine::StreamObserver {
 public:
  struct Times {
    // The fraction of the time from a learner's first to its last step in which a step runs.
    double busy = 0.0;
    double gap_seconds = 0.0;   // median time from the end of a step to the start of its learner's next step
    double step_seconds = 0.0;  // median time from the start of a step to its end
  };

  // Times about `steps` steps that are enqueued from now on. Two events in each step make it slightly longer.
  void start(int steps);
  // Returns the times of the steps since start(), at least two per learner. All streams must have been drained.
  Times stop();

  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override;
  void after_task(const engine::Stream& stream, const engine::TaskInfo& task) override;

 private:
  using Moment = engine::cuda::Handle<cudaEvent_t, cudaEventDestroy>;
  struct Step {
    Moment begin;
    Moment end;
  };

  bool times(const engine::Stream& stream) const;
  Moment mark(const engine::Stream& stream);

  bool running_ = false;
  bool marking_ = false;  // an event is being enqueued, which the observer must ignore
  std::vector<Moment> spare_;
  std::map<const engine::Stream*, std::vector<Step>> steps_;
};

}  // namespace arbalest::bench
