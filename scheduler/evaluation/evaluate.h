// Evaluates weights over all mini-batches of a ring, which are spread over the learners of all processes. All functions
// leave the ring at its start, and may be called only when the learners are idle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "dataflow/layers/metrics.h"
#include "scheduler/replicas/replicas.h"

namespace arbalest::scheduler {

class EvaluationWeights;

struct Evaluation {
  dataflow::MetricSums sums = {};  // over the examples, of which there is at least one
  std::int64_t examples = 0;
  // As in Progress, for the replicas at this point. 0 if the model is not their mean, and for z right after an
  // averaging.
  double replica_distance = 0.0;
  double replica_spread = 0.0;

  double loss() const noexcept { return sums.loss() / static_cast<double>(examples); }
};

// Calls enqueue(team, batches, tickets) until all batches of a finite ring are under way, with as many at a time as the
// team has learners or as are left, and take(ticket) in their order.
using EnqueueBatches =
    std::function<void(const PlacedTeam&, std::span<const dataflow::Batch>, std::span<learners::Ticket>)>;
using TakeTicket = std::function<void(const learners::Ticket&)>;
void run_over(Replicas& replicas, dataflow::BatchRing& ring, const EnqueueBatches& enqueue, const TakeTicket& take);

// Returns the sums of the metrics of `weights`, which have been refreshed. `epoch`: of the training; in each another
// process gets a given mini-batch, so that data that differ between processes are found. Throws kData if no example can
// be read.
Evaluation evaluate_weights(Replicas& replicas, const EvaluationWeights& weights, dataflow::BatchRing& ring,
                            std::uint64_t epoch);

// Returns the mean over learners of the mean loss of each learner's own weights over the labeled examples.
double evaluate_replicas(Replicas& replicas, dataflow::BatchRing& ring);

// Returns the mean loss of the learners' weights over the first `rounds` mini-batches of each, computed as in training
// but without a step; none if it is not finite, or if no example can be read.
std::optional<double> training_loss(Replicas& replicas, dataflow::BatchRing& ring, int rounds, std::uint64_t seed);

}  // namespace arbalest::scheduler
