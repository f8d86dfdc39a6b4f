// One replica, which averaging would not change: it never waits.
#pragma once

#include "scheduler/rounds/round.h"

namespace arbalest::scheduler {

class IndependentRound final : public Round {
 public:
  IndependentRound(const sma::Options& options, const RoundContext& context) : Round(options, context) {}

  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  const float* model(std::size_t pool) const override { return replicas()[pool].weights(); }
  bool has_equal_replicas() const override { return true; }

 private:
  engine::Stream& model_stream(std::size_t pool) const override { return replicas()[pool].stream(); }
  const float* frozen_source(std::size_t pool) const override { return model(pool); }
  bool measure(sma::GradientVariance& variance) override;
};

}  // namespace arbalest::scheduler
