// Every replica applies the mean of all gradients (s_sgd): each update waits for it. The gradient is reduced in parts,
// while the backward pass computes the next ones.
#pragma once

#include <vector>

#include "scheduler/rounds/round.h"

namespace arbalest::scheduler {

class ReducedRound final : public Round {
 public:
  ReducedRound(const sma::Options& options, const RoundContext& context);

  learners::UpdateSources sources(std::size_t pool) override { return {.gradient = central().gradient(pool)}; }
  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  std::optional<sma::AveragingTicket> gather() override;
  const float* model(std::size_t pool) const override { return central().other(pool); }
  // All replicas are compared, on all devices.
  bool compare_copies() override;
  bool has_equal_replicas() const override { return true; }

 private:
  std::vector<std::vector<const float*>> weights_;  // by pool and learner
};

}  // namespace arbalest::scheduler
