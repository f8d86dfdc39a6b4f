// Observes the tasks of all streams of a device, on the threads that run them: for traces, measurements, and tests that
// delay, hold, drop or fail a task. Without an observer the cost is one pointer comparison per task.
#pragma once

#include "engine/task_info.h"

namespace arbalest::engine {

class Stream;

class StreamObserver {
 public:
  virtual ~StreamObserver() = default;
  // On a CPU device, an exception that it throws is the error of the task, which then does not run.
  virtual void before_task(const Stream& stream, const TaskInfo& task) = 0;
  virtual void after_task(const Stream& stream, const TaskInfo& task) = 0;
  // Returns true to make the stream ignore this wait for an event. Tests use it to prove that the wait is needed.
  virtual bool drops_wait(const Stream& /*stream*/, const char* /*label*/) { return false; }
};

}  // namespace arbalest::engine
