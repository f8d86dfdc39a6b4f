// Asynchronous SGD over several processes, each of which serves one shard of the weights (shards/sharded_pushes.h).
#pragma once

#include "scheduler/rounds/round.h"
#include "scheduler/shards/sharded_pushes.h"

namespace arbalest::scheduler {

class ShardedRound final : public Round {
 public:
  ShardedRound(const sma::Options& options, const RoundContext& context);

  learners::UpdateSources sources(std::size_t /*pool*/) override { return {.push_every = options().period}; }
  // Lets each learner push once more.
  StrideEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  int strides_apart() const override { return options().clocks_apart() + kRunAhead; }
  std::uint64_t drain(Progress& progress) override;
  void interrupt() noexcept override { pushes_.abandon(); }
  void make_readable(Progress& progress) override { drain(progress); }
  // Completes the weights, of which each process has a shard. Drained; a call of World's operations.
  std::optional<sma::AveragingTicket> gather() override;
  void hand_out_state() override;
  void take_over_state() override;

 private:
  bool measure(sma::GradientSpread& /*spread*/) override { return false; }
  void complete_weights();

  sma::ParameterServer& server_;
  ShardedPushes pushes_;
  bool is_complete_ = true;  // whether all processes have all weights: until somebody pushes, they have
};

}  // namespace arbalest::scheduler
