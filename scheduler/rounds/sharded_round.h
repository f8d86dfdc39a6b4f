// Asynchronous SGD over several processes, each of which serves one shard of the weights (shards/sharded_pushes.h).
#pragma once

#include "scheduler/rounds/pushed_round.h"
#include "scheduler/shards/sharded_pushes.h"

namespace arbalest::scheduler {

class ShardedRound final : public PushedRound {
 public:
  ShardedRound(const sma::Options& options, const RoundContext& context);

  // Lets each learner push once more.
  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  std::uint64_t drain(Progress& progress) override;
  void interrupt() noexcept override { pushes_.abandon(); }
  void make_readable(Progress& progress) override { drain(progress); }
  // Completes the weights, of which each process has a shard. Drained; a call of World's operations.
  std::optional<sma::AveragingTicket> gather() override;
  void hand_out_state() override;

 private:
  void complete_weights();

  ShardedPushes pushes_;
  bool is_complete_ = true;  // whether all processes have all weights: until somebody pushes, they have
};

}  // namespace arbalest::scheduler
