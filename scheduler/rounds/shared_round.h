// There are no rounds, and replicas never wait: each copies the shared weights, z of the only device, before a
// gradient, and writes its step to them (hogwild).
#pragma once

#include "engine/shared_weights.h"
#include "scheduler/rounds/round.h"

namespace arbalest::scheduler {

class SharedRound final : public Round {
 public:
  SharedRound(const sma::Options& options, const RoundContext& context);

  learners::UpdateSources sources(std::size_t pool) override;
  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  std::optional<sma::AveragingTicket> gather() override;
  void resume_after(std::span<const engine::Event> read) override;

 private:
  engine::SharedWeights shared_;
};

}  // namespace arbalest::scheduler
