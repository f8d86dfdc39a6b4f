// The weights that are evaluated and saved, on every device: the model, or its moving average, with running statistics
// of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/evaluation/central_statistics.h"
#include "scheduler/evaluation/moving_average.h"
#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/training_clock.h"
#include "scheduler/rounds/round.h"

namespace arbalest::scheduler {

// The source of the central model's running statistics.
enum class Statistics {
  kReestimated,  // measured on a ring of training mini-batches, if there is one; this takes as long as evaluating its
                 // mini-batches
  // The mean of the replicas' statistics. In a moving average, earlier re-estimated statistics are part of the mean,
  // too.
  kAveraged
};

class EvaluationWeights {
 public:
  // statistics_ring: finite; null: statistics are never measured. All must outlive it.
  EvaluationWeights(const MovingAverageOptions& options, dataflow::BatchRing* statistics_ring, Replicas& replicas,
                    const TrainingClock& clock);

  MovingAverage& average() noexcept { return average_; }
  const MovingAverage& average() const noexcept { return average_; }

  // Enqueues that the round's model is added to the moving average, between two iterations; Round::gather() must have
  // been called. No work may be reading the weights. Returns by pool the event after which they are complete.
  std::span<const engine::Event> add(Round& round) { return read(round, false); }
  // Enqueues all that makes the weights those of the round's model: Round::gather() included, whose result it returns.
  // Call only when drained; ready(pool) tells when the weights are complete.
  std::optional<sma::AveragingTicket> refresh(Round& round, Statistics statistics);
  const engine::Event& ready(std::size_t pool) const { return ready_[pool]; }
  // Forgets measured statistics, because the weights or the learners change. Blocks the host.
  void forget_statistics();

 private:
  std::span<const engine::Event> read(Round& round, bool rounds_them);
  void measure_statistics();

  MovingAverage average_;
  dataflow::BatchRing* statistics_ring_;
  Replicas& replicas_;
  const TrainingClock& clock_;
  std::vector<engine::Event> ready_;  // by pool
  std::optional<CentralStatistics> statistics_;
};

}  // namespace arbalest::scheduler
