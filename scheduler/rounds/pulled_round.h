// A round's last update pulls towards the old central model (sma, ea_sgd): it waits until averaging has read the
// weights, which it does while the learners compute their last gradient. An iteration is a round.
#pragma once

#include "scheduler/rounds/averaged_round.h"

namespace arbalest::scheduler {

class PulledRound final : public AveragedRound {
 public:
  PulledRound(const sma::Options& options, const RoundContext& context) : AveragedRound(options, context) {}

  // Both buffers of z; StepParameters::reference names that of the round.
  learners::UpdateSources sources(std::size_t pool) override;
  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  // All learners go on from z, with zero optimizer state.
  void restart_at_drop() override;
};

}  // namespace arbalest::scheduler
