// Callbacks of BatchRing: when it fills mini-batches, and when the consumer waits for one. Used by traces.
#pragma once

namespace arbalest::dataflow {

// The ring holds its mutex during every call: return quickly, and do not call the ring.
class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // Called on the pool's thread around a task that fills one or more mini-batches. Tasks on different threads overlap:
  // match the two calls by thread.
  virtual void before_fill() = 0;
  virtual void after_fill() = 0;
  // Called on the consumer's thread, around a wait for a batch that is not yet filled.
  virtual void before_wait() = 0;
  virtual void after_wait() = 0;
};

}  // namespace arbalest::dataflow
