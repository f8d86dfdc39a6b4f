// The rounds that end with an averaging of the replicas' weights, by which z moves (sma/outer_update.h).
#pragma once

#include "scheduler/rounds/round.h"
#include "sma/outer_update.h"

namespace arbalest::scheduler {

class AveragedRound : public Round {
 public:
  bool compare_copies() override { return synchronizer().compare_central(); }
  void save(TrainingState& state) const override;
  void restore(const TrainingState& state) override;
  void save_position(TrainingState& state) const override;
  void restore_position(const TrainingState& state) override;

 protected:
  AveragedRound(const sma::Options& options, const RoundContext& context);

  // Enqueues one update of z after ready[p][j], and returns by pool the event after which the weights may change.
  // learning_rate: that of the round's last step.
  std::span<const engine::Event> average(Replicas::EventsByPool ready, float learning_rate) {
    return outer_.enqueue(central(), ready, learning_rate);
  }
  // z of the round under way, if it is not the model; null: it is.
  virtual const float* hidden_central() const { return nullptr; }
  void forget_learning_rate() { outer_.continue_from(0.0F); }

 private:
  sma::OuterUpdate outer_;
};

}  // namespace arbalest::scheduler
