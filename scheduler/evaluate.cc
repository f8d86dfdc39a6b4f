// Evaluates the model and the replicas, and copies the model to the host.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "engine/error.h"
#include "engine/process/all_gather.h"
#include "scheduler/batch_rows.h"
#include "scheduler/replica_distance.h"
#include "scheduler/scheduler.h"
#include "scheduler/spread_batches.h"

namespace arbalest::scheduler {

using learners::Learner;
using learners::LearnerPool;
using learners::Ticket;

void Scheduler::move_averages(bool rounds_them) {
  const float weight = moving_average_.take(progress());
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    engine::BFloat16* rounded = rounds_them ? pools_[p]->rounded_evaluation_weights() : nullptr;
    evaluation_ready_[p] = synchronizer_.read_model(p, pools_[p]->evaluation_weights(), weight, rounded);
  }
}

void Scheduler::refresh_evaluation_weights(Statistics statistics) {
  gathered_ = gather_model() ? std::optional(synchronizer_.ticket()) : std::nullopt;
  move_averages(true);
  if (!statistics_ || statistics == Statistics::kAveraged) return;
  if (!statistics_->are_of(batches_)) measure_statistics();
  for (std::size_t p = 0, j = 0; p < pools_.size(); j += ready_[p++].size()) {
    evaluation_ready_[p] = statistics_->enqueue_copy(*pools_[p], *learners_[j], evaluation_ready_[p]);
  }
}

void Scheduler::spread(dataflow::BatchRing& ring, const EnqueueBatch& enqueue, const TakeTicket& take) {
  const auto wait_for = [this](const engine::Event& event) { wait(event); };
  if (exchange() == nullptr) {
    spread_batches(ring, learners_.size(), kRunAhead, enqueue, wait_for, take);
    return;
  }
  try {
    spread_together(ring, share_, enqueue, wait_for, take);
  } catch (...) {
    rethrow_cause();
  }
}

void Scheduler::forget_statistics() {
  for (const engine::Event& copied : statistics_->copies()) wait(copied);
  statistics_->start();
}

void Scheduler::measure_statistics() {
  forget_statistics();
  const std::size_t row_bytes = statistics_->elements() * sizeof(float);
  BatchRows rows(world_, row_bytes,
                 [&](BatchRows::Row row) { statistics_->add(reinterpret_cast<const float*>(row.data())); });
  take_share(*options_.statistics_ring, 0);
  spread(
      *options_.statistics_ring,
      [&](std::size_t j, const dataflow::Batch& batch) {
        return learners_[j]->measure_statistics(batch, {.task = batch.number, .seed = options_.seed},
                                                evaluation_ready_[pool_of_[j]]);
      },
      [&](const Ticket& ticket) {
        rows.add(ticket.task, std::as_bytes(std::span(ticket.statistics, statistics_->elements())));
      });
  rows.finish();
  statistics_->finish(batches_);
}

namespace {

// The result of one mini-batch of an evaluation.
struct BatchResult {
  std::int64_t examples = 0;
  engine::StepResult result;
};
static_assert(std::is_trivially_copyable_v<BatchResult>);

}  // namespace

Evaluation Scheduler::evaluate(dataflow::BatchRing& ring) {
  ARBALEST_CHECK(tasks_.empty());
  refresh_evaluation_weights(Statistics::kReestimated);
  Evaluation evaluation;
  BatchRows rows(world_, sizeof(BatchResult), [&](BatchRows::Row row) {
    BatchResult batch;
    std::memcpy(&batch, row.data(), sizeof batch);
    evaluation.examples += batch.examples;
    evaluation.sums.add(batch.result);
  });
  take_evaluation_share(ring);
  spread(
      ring,
      [&](std::size_t j, const dataflow::Batch& batch) {
        return learners_[j]->evaluate(batch, evaluation_ready_[pool_of_[j]]);
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
  if (gathered_) {
    wait(gathered_->done);
    evaluation.replica_distance = distance_of(*gathered_->result, learners());
    evaluation.replica_spread = spread_of(*gathered_->result, learners());
  }
  return evaluation;
}

std::optional<double> Scheduler::training_loss(dataflow::BatchRing& ring, int rounds) {
  ARBALEST_CHECK(batches_ == 0 && tasks_.empty());
  take_share(ring, 0);
  double loss_sum = 0.0;
  std::int64_t examples = 0;
  std::vector<Ticket> tickets;
  for (int round = 0; round < rounds; ++round) {
    together_.clear();
    while (together_.size() < learners_.size()) together_.push_back(ring.next().value());
    tickets.clear();
    for (std::size_t j = 0; j < learners_.size(); ++j) {
      tickets.push_back(
          learners_[j]->training_loss(together_[j], {.task = together_[j].number, .seed = options_.seed}));
    }
    for (const Ticket& ticket : tickets) {
      wait(ticket.done);
      loss_sum += static_cast<double>(ticket.result->sums[engine::kLossSum]);
      examples += ticket.examples;
    }
    for (const dataflow::Batch& batch : together_) ring.release(batch.number);
  }
  ring.restart();
  const std::vector<double> losses = engine::process::all_gather(world_, loss_sum);
  const std::vector<double> counts = engine::process::all_gather(world_, static_cast<double>(examples));
  const double count = std::reduce(counts.begin(), counts.end());
  const double mean = std::reduce(losses.begin(), losses.end()) / count;  // NaN without examples
  return std::isfinite(mean) ? std::optional(mean) : std::nullopt;
}

double Scheduler::evaluate_replicas(dataflow::BatchRing& ring) {
  ARBALEST_CHECK(tasks_.empty() && options_.evaluates_replicas);
  double loss_sum = 0.0;
  std::int64_t examples = 0;
  if (world_.size() > 1) ring.restart(0, {});  // each learner evaluates all of it
  while (const auto batch = ring.next()) {
    std::vector<Ticket> tickets;
    for (Learner* learner : learners_) tickets.push_back(learner->evaluate_own_weights(*batch));
    for (const Ticket& ticket : tickets) {
      wait(ticket.done);
      loss_sum += static_cast<double>(ticket.result->sums[engine::kLossSum]);
      examples += ticket.examples;
    }
    ring.release(batch->number);
  }
  ring.restart();
  const std::vector<double> losses = engine::process::all_gather(world_, loss_sum);
  const std::vector<double> counts = engine::process::all_gather(world_, static_cast<double>(examples));
  return std::reduce(losses.begin(), losses.end()) / std::max(std::reduce(counts.begin(), counts.end()), 1.0);
}

std::vector<dataflow::NamedTensor> Scheduler::snapshot(Statistics statistics) {
  abandon();
  refresh_evaluation_weights(statistics);
  for (const engine::Event& ready : evaluation_ready_) wait(ready);
  return whole([&](std::size_t p) { return pools_[p]->evaluation_weights(); });
}

}  // namespace arbalest::scheduler
