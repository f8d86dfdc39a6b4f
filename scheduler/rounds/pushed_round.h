// There are no rounds: a server applies each gradient as it comes, and the learner then gets the server's weights
// (async_sgd). Each process has a server, which serves its shard of z: with one process, all of it.
#pragma once

#include "scheduler/rounds/round.h"

namespace arbalest::scheduler {

class PushedRound : public Round {
 public:
  learners::UpdateSources sources(std::size_t /*pool*/) override { return {.push_every = options().period}; }
  int iterations_apart() const override { return options().clocks_apart() + kRunAhead; }
  void take_over_state() override;

 protected:
  // Restarts the server.
  PushedRound(const sma::Options& options, const RoundContext& context);

  sma::ParameterServer& server() const { return synchronizer().server(); }

 private:
  // The learners compute their gradients at different weights, so these have no variance to measure.
  bool measure(sma::GradientVariance& /*variance*/) override { return false; }
};

}  // namespace arbalest::scheduler
