#include "scheduler/evaluation/evaluation_weights.h"

#include "scheduler/evaluation/batch_rows.h"
#include "scheduler/evaluation/evaluate.h"

namespace arbalest::scheduler {

using learners::Ticket;

EvaluationWeights::EvaluationWeights(const MovingAverageOptions& options, dataflow::BatchRing* statistics_ring,
                                     Replicas& replicas, const TrainingClock& clock)
    : average_(options),
      statistics_ring_(statistics_ring),
      replicas_(replicas),
      clock_(clock),
      ready_(replicas.pools().size()) {
  if (statistics_ring != nullptr) statistics_.emplace(replicas.pool(0));
}

std::span<const engine::Event> EvaluationWeights::read(Round& round, bool rounds_them) {
  const float weight = average_.take(clock_.epochs());
  for (std::size_t p = 0; p < ready_.size(); ++p) {
    learners::LearnerPool& pool = replicas_.pool(p);
    ready_[p] = round.read_model(p, pool.evaluation_weights(), weight,
                                 rounds_them ? pool.rounded_evaluation_weights() : nullptr);
  }
  return ready_;
}

std::optional<sma::AveragingTicket> EvaluationWeights::refresh(Round& round, Statistics statistics) {
  const std::optional<sma::AveragingTicket> gathered = round.gather();
  read(round, true);
  if (!statistics_ || statistics == Statistics::kAveraged) return gathered;
  if (!statistics_->are_of(clock_.batches())) measure_statistics();
  for (std::size_t p = 0; p < ready_.size(); ++p) {
    ready_[p] = statistics_->enqueue_copy(replicas_.pool(p), replicas_.first_of(p), ready_[p]);
  }
  return gathered;
}

void EvaluationWeights::forget_statistics() {
  if (!statistics_) return;
  for (const engine::Event& copied : statistics_->copies()) replicas_.wait(copied);
  statistics_->start();
}

void EvaluationWeights::measure_statistics() {
  forget_statistics();
  const std::size_t row_bytes = statistics_->elements() * sizeof(float);
  BatchRows rows(replicas_.world(), row_bytes,
                 [&](BatchRows::Row row) { statistics_->add(reinterpret_cast<const float*>(row.data())); });
  replicas_.take_share(*statistics_ring_, 0);
  run_over(
      replicas_, *statistics_ring_,
      [&](const PlacedTeam& each, std::span<const dataflow::Batch> batches, std::span<Ticket> tickets) {
        each.team->measure_statistics(batches, {.seed = clock_.seed()}, ready_[each.pool], tickets);
      },
      [&](const Ticket& ticket) {
        rows.add(ticket.task, std::as_bytes(std::span(ticket.statistics, statistics_->elements())));
      });
  rows.finish();
  statistics_->finish(clock_.batches());
}

}  // namespace arbalest::scheduler
