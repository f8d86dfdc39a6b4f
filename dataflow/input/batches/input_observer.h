// Observes when mini-batches are filled and when the consumer waits for one, for traces and measurements. Without an
// observer the cost is one pointer comparison per task of the pool and per wait of the consumer.
#pragma once

namespace arbalest::dataflow {

class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // Called on a thread of the pool, around a task that fills one or more batches.
  virtual void before_fill() = 0;
  virtual void after_fill() = 0;
  // Called on the consumer's thread, around a wait for a batch that is not yet filled.
  virtual void before_wait() = 0;
  virtual void after_wait() = 0;
};

}  // namespace arbalest::dataflow
