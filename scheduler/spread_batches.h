// Runs work on every batch of a finite ring, spread over learners.
#pragma once

#include <cstddef>

#include "dataflow/input/batches/batch_ring.h"
#include "learners/learner.h"
#include "scheduler/ring_queue.h"

namespace arbalest::scheduler {

// Calls enqueue(number of a learner, batch) for every batch of `ring`; the learners take turns. Calls take(ticket) once
// that work is done, in the order of the batches. Up to `ahead` batches may be under way per learner. wait(event) must
// block the host. Leaves the ring at its start.
template <typename Enqueue, typename Wait, typename Take>
void spread_batches(dataflow::BatchRing& ring, std::size_t learners, std::size_t ahead, const Enqueue& enqueue,
                    const Wait& wait, const Take& take) {
  RingQueue<learners::Ticket> outstanding(learners * ahead);
  const auto pop = [&] {
    const learners::Ticket ticket = outstanding.pop();
    wait(ticket.done);
    ring.release(ticket.task);
    take(ticket);
  };
  std::size_t learner = 0;
  while (const auto batch = ring.next()) {
    if (outstanding.size() == learners * ahead) pop();
    outstanding.push(enqueue(learner, *batch));
    learner = (learner + 1) % learners;
  }
  while (!outstanding.empty()) pop();
  ring.restart();
}

}  // namespace arbalest::scheduler
