// The work under way in asynchronous SGD: by learner, the mini-batches whose gradients it pushes next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "engine/host/completions.h"
#include "learners/learner.h"
#include "scheduler/dispatcher.h"
#include "scheduler/ring_queue.h"

namespace arbalest::scheduler {

// The pushes of one learner.
struct LearnerPushes {
  RingQueue<learners::Ticket> tasks{0};         // of the push under way, oldest first
  float learning_rate = 0.0F;                   // of the push under way
  std::optional<std::uint64_t> unchecked = {};  // last mini-batch of a push that the server may have refused
};

struct Pushes {
  Dispatcher dispatcher;
  engine::Completions completions;           // gets the number of a learner whose gradients are complete
  dataflow::BatchRing* ring = nullptr;       // the ring that the tasks came from
  std::vector<LearnerPushes> learners = {};  // by number over all devices
};

}  // namespace arbalest::scheduler
