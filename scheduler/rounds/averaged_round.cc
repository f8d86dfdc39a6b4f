#include "scheduler/rounds/averaged_round.h"

#include <utility>

#include "scheduler/replicas/host_copies.h"

namespace arbalest::scheduler {

AveragedRound::AveragedRound(const sma::Options& options, const RoundContext& context)
    : Round(options, context), outer_(this->options(), learners()) {}

// All devices of all processes hold these vectors alike, so only rank 0 copies them.
void AveragedRound::save(TrainingState& state) const {
  const learners::LearnerPool& first = replicas().pool(0);
  const bool is_here = replicas().world().rank() == 0;
  const auto read = [&](Tensors memory, const float* vector) {
    if (vector == nullptr || !is_here) return Tensors();
    return first.training_plan().parameters().to_canonical(first.device(), vector, dataflow::VectorPart::kAll,
                                                           std::move(memory));
  };
  save_position(state);
  state.central = read(std::move(state.central), hidden_central());
  state.central_before = read(std::move(state.central_before), central().other(0));
  state.velocity = read(std::move(state.velocity), central().velocity(0));
}

void AveragedRound::save_position(TrainingState& state) const {
  state.steps_left = 0;
  state.last_learning_rate = outer_.last_learning_rate();
}

void AveragedRound::restore_position(const TrainingState& state) { outer_.continue_from(state.last_learning_rate); }

void AveragedRound::restore(const TrainingState& state) {
  restore_position(state);
  if (state.central_before.empty()) return;
  for (std::size_t p = 0; p < replicas().pools().size(); ++p) {
    if (!state.central.empty()) to_device(replicas(), p, state.central, central().present(p));
    to_device(replicas(), p, state.central_before, central().other(p));
    if (!state.velocity.empty()) to_device(replicas(), p, state.velocity, central().velocity(p));
  }
}

}  // namespace arbalest::scheduler
