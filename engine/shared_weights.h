// Hogwild's passes: the learners of a CPU device read and write one vector of weights at once, without locks and in any
// order (Niu, Recht, Re, Wright, "HOGWILD!: A lock-free approach to parallelizing stochastic gradient descent", NIPS
// 2011). A learner copies the vector w to w_j, computes its gradient there, and takes its step on w:
//   w <- w + d(w, g)        d by the optimizer's rule, with the learner's own state (engine/passes/weight_update.h)
// Every element of w is read and written by relaxed atomic operations. So a copy may hold elements of before and after
// another learner's step, and of two learners that change an element at once one may undo the other's change.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/passes/weight_update.h"
#include "engine/stream.h"

namespace arbalest::engine {

// The vector. Streams that use it in other ways than by the passes below need an event between these uses and passes.
struct SharedWeights {
  float* values = nullptr;              // w, [elements]
  std::atomic<std::uint64_t> steps{0};  // steps of all learners that have ended
};

struct SharedCopy {
  SharedWeights* shared = nullptr;
  float* weights = nullptr;        // out: w_j, [elements]
  std::int64_t elements = 0;       // the first elements of w
  std::uint64_t* steps = nullptr;  // out: SharedWeights::steps before the copy
};

struct SharedUpdate {
  SharedWeights* shared = nullptr;
  // `weights` is w_j, and the step changes w instead. No references and no copy in low precision. If an element of the
  // step at w_j is not finite (or about to overflow), the step is refused as a whole; w and the state stay unchanged.
  WeightUpdate update;
  const std::uint64_t* steps = nullptr;  // written by the SharedCopy before
  std::int64_t* staleness = nullptr;     // out: steps of other learners that have ended since that copy
};

// Each enqueues a task on a stream of a CPU device, as Stream::enqueue() does. They allocate, so record them.
void enqueue(Stream& stream, const SharedCopy& task, const char* label);
void enqueue(Stream& stream, const SharedUpdate& task, const char* label);

}  // namespace arbalest::engine
