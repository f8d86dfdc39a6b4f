// Watches how mini-batches are filled and waited for: traces and measurements. Costs one pointer comparison where a
// task of the pool begins and where the consumer must wait, and nothing else when absent.
#pragma once

namespace arbalest::dataflow {

class InputObserver {
 public:
  virtual ~InputObserver() = default;
  // On a thread of the pool: one or more batches are filled between the two.
  virtual void before_fill() = 0;
  virtual void after_fill() = 0;
  // On the consumer's thread: the next batch is not there yet.
  virtual void before_wait() = 0;
  virtual void after_wait() = 0;
};

}  // namespace arbalest::dataflow
