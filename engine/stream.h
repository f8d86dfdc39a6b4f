// In-order, asynchronous work on one device. One host thread at a time may enqueue on a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "engine/event.h"
#include "engine/ops/averaging.h"
#include "engine/ops/gather_examples.h"
#include "engine/ops/gradient_clip.h"
#include "engine/ops/moving_average.h"
#include "engine/ops/round_weights.h"
#include "engine/ops/tensor_sum.h"
#include "engine/ops/vector_spread.h"
#include "engine/ops/weight_update.h"
#include "engine/task_graph.h"

namespace arbalest::engine {

// What needs no preparation: passes over flat vectors, and the gathering of a mini-batch.
using FlatTask = std::variant<WeightUpdate, GradientClip, ReplicaDifference, CentralUpdate, LocalAveraging, VectorMean,
                              VectorSpread, MovingAverage, GatherExamples, RoundWeights, TensorSum>;

// Labels name a task in errors, traces and observers; string literals, or strings that outlive the stream.
class Stream {
 public:
  virtual ~Stream() = default;

  // "cpu:0-1 learner 0"
  virtual const std::string& name() const noexcept = 0;

  // What is enqueued from now on belongs to mini-batch `task`: errors and traces name it.
  virtual void begin_task(std::uint64_t task) = 0;

  // Each of these enqueues and returns; the host does not block (unless the queue is full). Pointers must stay valid
  // until the stream has passed the task. After an error the stream skips everything that follows.
  virtual void wait(const Event& event, const char* label) = 0;  // later work starts after `event`, and fails if it did
  virtual void copy(void* to, const void* from, std::size_t bytes, const char* label) = 0;
  virtual void fill_zero(void* to, std::size_t bytes, const char* label) = 0;
  virtual void enqueue(const FlatTask& task, const char* label) = 0;
  virtual void launch(const TaskGraph& graph, const char* label) = 0;

  // The point after all work enqueued so far.
  virtual Event record() = 0;

  // copy() of a few words to host memory of the device's (Device::allocate_host), and record(): they are there when the
  // event is complete. Both addresses and `bytes` are multiples of 4.
  virtual Event deliver(void* to, const void* from, std::size_t bytes, const char* label) {
    copy(to, from, bytes, label);
    return record();
  }

  // copy() of a few words from memory of the host's to the device's. Both addresses and `bytes` are multiples of 4.
  virtual void fetch(void* to, const void* from, std::size_t bytes, const char* label) { copy(to, from, bytes, label); }

  // Blocks the host until all work enqueued so far has ended; its errors stay with the events.
  virtual void drain() noexcept = 0;

  // Between the two, tasks are kept for a TaskGraph instead of being run. At the end some may run once, and the host
  // waits for them, to warm up libraries, on whatever their operands hold: what a replay is to read is written
  // afterwards. wait, record, deliver, fetch and launch are not
  // allowed then.
  virtual void begin_recording() = 0;
  virtual std::unique_ptr<TaskGraph> end_recording() = 0;

 private:
  friend class Event;
  virtual bool has_passed(std::uint64_t position) const = 0;
  virtual void synchronize(std::uint64_t position) = 0;
};

}  // namespace arbalest::engine
