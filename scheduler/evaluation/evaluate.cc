#include "scheduler/evaluation/evaluate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>
#include <vector>

#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "scheduler/evaluation/batch_rows.h"
#include "scheduler/evaluation/evaluation_weights.h"
#include "scheduler/evaluation/spread_batches.h"
#include "scheduler/replicas/ring_slots.h"

namespace arbalest::scheduler {

using learners::Ticket;

namespace {

// The result of one mini-batch of an evaluation.
struct BatchResult {
  std::int64_t examples = 0;
  engine::StepResult result;
};
static_assert(std::is_trivially_copyable_v<BatchResult>);

// The loss over the labeled examples of all processes.
struct LossSum {
  double loss = 0.0;
  double examples = 0.0;

  void add(const Ticket& ticket) {
    loss += static_cast<double>(ticket.result->sums[engine::kLossSum]);
    examples += static_cast<double>(ticket.examples);
  }
  LossSum of_all(engine::process::World& world) const {
    const std::vector<double> losses = engine::process::all_gather(world, loss);
    const std::vector<double> counts = engine::process::all_gather(world, examples);
    return {std::reduce(losses.begin(), losses.end()), std::reduce(counts.begin(), counts.end())};
  }
};

// The learners of a split model take mini-batches together.
void take_evaluation_share(const Replicas& replicas, dataflow::BatchRing& ring, std::uint64_t epoch) {
  if (replicas.exchange() != nullptr) return replicas.take_share(ring, 0);
  const int processes = replicas.world().size();
  if (processes == 1) return;
  const dataflow::BatchShare& own = replicas.share();
  const dataflow::BatchShare share = own.moved(epoch * static_cast<std::uint64_t>(own.all / processes));
  if (ring.share() != share) ring.restart(0, share);
}

}  // namespace

void run_over(Replicas& replicas, dataflow::BatchRing& ring, const EnqueueBatches& enqueue, const TakeTicket& take) {
  const auto wait_for = [&](const engine::Event& event) { replicas.wait(event); };
  if (replicas.exchange() == nullptr) {
    spread_batches(ring, replicas.teams(), kRunAhead, enqueue, wait_for, take);
    return;
  }
  try {
    spread_together(ring, replicas.teams(), replicas.share(), enqueue, wait_for, take);
  } catch (...) {
    replicas.rethrow_cause();
  }
}

Evaluation evaluate_weights(Replicas& replicas, const EvaluationWeights& weights, dataflow::BatchRing& ring,
                            std::uint64_t epoch) {
  Evaluation evaluation;
  BatchRows rows(replicas.world(), sizeof(BatchResult), [&](BatchRows::Row row) {
    BatchResult batch;
    std::memcpy(&batch, row.data(), sizeof batch);
    evaluation.examples += batch.examples;
    evaluation.sums.add(batch.result);
  });
  take_evaluation_share(replicas, ring, epoch);
  run_over(
      replicas, ring,
      [&](const PlacedTeam& each, std::span<const dataflow::Batch> batches, std::span<Ticket> tickets) {
        each.team->evaluate(batches, weights.ready(each.pool), tickets);
      },
      [&](const Ticket& ticket) {
        const BatchResult batch{ticket.examples, *ticket.result};
        rows.add(ticket.task, std::as_bytes(std::span(&batch, 1)));
      });
  rows.finish();
  if (evaluation.examples == 0) {
    engine::fail(engine::ErrorKind::kData,
                 "no example of the evaluated set can be read; `arbalest data verify` names them with their reasons");
  }
  return evaluation;
}

std::optional<double> training_loss(Replicas& replicas, dataflow::BatchRing& ring, int rounds, std::uint64_t seed) {
  replicas.take_share(ring, 0);
  LossSum own;
  for (int round = 0; round < rounds; ++round) {
    std::vector<dataflow::Batch> batches;
    while (batches.size() < replicas.size()) batches.push_back(ring.next().value());
    std::vector<Ticket> tickets(replicas.size());
    for (const PlacedTeam& each : replicas.teams()) {
      each.team->training_loss(each.part_of(batches), {.seed = seed}, each.part_of(tickets));
    }
    for (const Ticket& ticket : tickets) {
      replicas.wait(ticket.done);
      own.add(ticket);
    }
    for (const dataflow::Batch& batch : batches) ring.release(batch.number);
  }
  ring.restart();
  const LossSum all = own.of_all(replicas.world());
  const double mean = all.loss / all.examples;  // NaN without examples
  return std::isfinite(mean) ? std::optional(mean) : std::nullopt;
}

double evaluate_replicas(Replicas& replicas, dataflow::BatchRing& ring) {
  LossSum own;
  if (replicas.world().size() > 1) ring.restart(0, {});  // each learner evaluates all of it
  while (const auto batch = ring.next()) {
    std::vector<dataflow::Batch> batches(replicas.size(), *batch);
    std::vector<Ticket> tickets(replicas.size());
    for (const PlacedTeam& each : replicas.teams()) {
      each.team->evaluate_own_weights(each.part_of(batches), each.part_of(tickets));
    }
    for (const Ticket& ticket : tickets) {
      replicas.wait(ticket.done);
      own.add(ticket);
    }
    ring.release(batch->number);
  }
  ring.restart();
  const LossSum all = own.of_all(replicas.world());
  return all.loss / std::max(all.examples, 1.0);
}

}  // namespace arbalest::scheduler
