// Runs work on every batch of a finite ring, spread over teams of learners.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/ring_queue.h"

namespace arbalest::scheduler {

// Calls enqueue(team, batches, tickets) until every batch of `ring` is under way, with one for each learner of the team
// or with the last ones of the ring; the teams take turns. Calls take(ticket) once that work is done, in the order of
// the batches. Up to `ahead` batches may be under way per learner. wait(event) must block the host. Leaves the ring at
// its start.
template <typename Enqueue, typename Wait, typename Take>
void spread_batches(dataflow::BatchRing& ring, std::span<const PlacedTeam> teams, std::size_t ahead,
                    const Enqueue& enqueue, const Wait& wait, const Take& take) {
  const std::size_t learners = teams.back().first + teams.back().team->size();
  RingQueue<learners::Ticket> outstanding(learners * ahead);
  const auto pop = [&] {
    const learners::Ticket ticket = outstanding.pop();
    wait(ticket.done);
    ring.release(ticket.task);
    take(ticket);
  };
  std::vector<dataflow::Batch> batches;
  std::vector<learners::Ticket> tickets;
  for (std::size_t t = 0;; t = (t + 1) % teams.size()) {
    batches.clear();
    while (batches.size() < teams[t].team->size()) {
      const auto batch = ring.next();
      if (!batch) break;
      batches.push_back(*batch);
    }
    if (batches.empty()) break;
    while (outstanding.size() + batches.size() > learners * ahead) pop();
    tickets.resize(batches.size());
    enqueue(teams[t], std::span<const dataflow::Batch>(batches), std::span(tickets));
    for (const learners::Ticket& ticket : tickets) outstanding.push(ticket);
  }
  while (!outstanding.empty()) pop();
  ring.restart();
}

// Does what spread_batches() does, for the learners of a split model, which run their batches together and have teams
// of their own. `share`: the learners of this process among those of all, which must all call it. If too few batches
// are left, the last learners repeat one, and nobody takes their results.
template <typename Enqueue, typename Wait, typename Take>
void spread_together(dataflow::BatchRing& ring, std::span<const PlacedTeam> teams, const dataflow::BatchShare& share,
                     const Enqueue& enqueue, const Wait& wait, const Take& take) {
  const dataflow::BatchShare before = ring.share();
  const auto all = static_cast<std::uint64_t>(share.all);
  const std::uint64_t end = (ring.batches().value() + all - 1) / all * all;
  std::vector<dataflow::Batch> batches;
  std::vector<learners::Ticket> tickets(teams.size());
  for (std::uint64_t first = 0; first < end; first += all) {
    batches.clear();
    while (std::cmp_less(batches.size(), share.count)) {
      const auto batch = ring.next();
      if (!batch) break;
      batches.push_back(*batch);
    }
    const std::size_t own = batches.size();
    if (own == 0) {  // the last batches are those of other processes
      ring.restart(0, {});
      batches.push_back(ring.next().value());
    }
    for (std::size_t j = 0; j < teams.size(); ++j) {
      dataflow::Batch batch = batches[std::min(j, batches.size() - 1)];
      // Learners derive the numbers of the others from their own.
      batch.number = first + static_cast<std::uint64_t>(share.first) + j;
      enqueue(teams[j], std::span<const dataflow::Batch>(&batch, 1), std::span(tickets).subspan(j, 1));
    }
    for (const learners::Ticket& ticket : tickets) wait(ticket.done);
    for (const dataflow::Batch& batch : batches) ring.release(batch.number);
    for (std::size_t j = 0; j < own; ++j) take(tickets[j]);
  }
  ring.restart(0, before);
}

}  // namespace arbalest::scheduler
