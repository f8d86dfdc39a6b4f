// A stream: in-order, asynchronous work on one device. Only one host thread at a time may enqueue on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "engine/event.h"
#include "engine/ops/gather_examples.h"
#include "engine/passes/averaging.h"
#include "engine/passes/gradient_clip.h"
#include "engine/passes/moving_average.h"
#include "engine/passes/round_weights.h"
#include "engine/passes/tensor_sum.h"
#include "engine/passes/vector_hash.h"
#include "engine/passes/vector_variance.h"
#include "engine/passes/weight_update.h"
#include "engine/replica_memory.h"
#include "engine/task_graph.h"
#include "engine/task_info.h"

namespace arbalest::engine {

class Completions;

// Tasks that need no preparation: passes over flat vectors, and the gathering of a mini-batch.
using FlatTask = std::variant<WeightUpdate, GradientClip, ReplicaDifference, CentralUpdate, LocalAveraging, VectorMean,
                              VectorVariance, MovingAverage, GatherExamples, RoundWeights, TensorSum, VectorHash>;

// A label names a task in errors, traces and observers; it must be a string literal, or outlive the stream.
class Stream {
 public:
  virtual ~Stream() = default;

  // "cpu:0-1 learner 0"
  virtual const std::string& name() const noexcept = 0;

  virtual StreamRole role() const noexcept = 0;

  // Assigns the work enqueued from now on to mini-batch `number` and to a phase. Errors and traces name both.
  virtual void begin_task(std::uint64_t number, WorkPhase phase) = 0;

  // Each of these enqueues a task and returns; the host does not block unless the queue is full. Pointers must stay
  // valid until the stream has passed the task. After an error the stream skips everything that follows.
  // Later work starts after `event`, and fails if the work before the event has failed.
  virtual void wait(const Event& event, const char* label) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, const char* label) = 0;
  virtual void fill_zero(void* to, std::size_t bytes, const char* label) = 0;
  virtual void enqueue(const FlatTask& task, const char* label) = 0;
  virtual void launch(const TaskGraph& graph, const char* label) = 0;

  // Returns the point after all work enqueued so far.
  virtual Event record() = 0;

  // Copies a few words to host memory of the device (Device::allocate_host), as copy(), and records an event; the words
  // are written when the event is complete. Both addresses and `bytes` must be multiples of 4.
  virtual Event deliver(void* to, const void* from, std::size_t bytes, const char* label) {
    copy(to, from, bytes, label);
    return record();
  }

  // As copy(), for a few words from host memory to device memory. Both addresses and `bytes` are multiples of 4.
  virtual void fetch(void* to, const void* from, std::size_t bytes, const char* label) { copy(to, from, bytes, label); }

  // Adds `value` to `to` once all work enqueued so far has ended, with or without error. `to` must live until then.
  virtual void report(Completions& to, std::uint64_t value);

  // Blocks the host until all work enqueued so far has ended. Errors stay with the events.
  virtual void drain() noexcept = 0;

  // Between these calls, tasks are kept for a TaskGraph instead of being run. To warm up libraries, end_recording() may
  // run some tasks once, with the current contents of their operands, and waits for them. So write the data for a
  // replay afterwards. wait, record, deliver, fetch, launch and report are not allowed while recording.
  // Tasks are recorded for all replicas of a team, with the addresses of replica 0 (replica_memory.h). More than one
  // replica needs StreamOptions::replicas as many.
  virtual void begin_recording(const ReplicaMemory& replicas) = 0;
  void begin_recording() { begin_recording(ReplicaMemory{}); }
  virtual std::unique_ptr<TaskGraph> end_recording() = 0;

 private:
  friend class Event;
  virtual bool has_passed(std::uint64_t position) const = 0;
  virtual void synchronize(std::uint64_t position) = 0;
};

}  // namespace arbalest::engine
