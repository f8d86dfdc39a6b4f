// Copies the weights and the optimizer's state of each learner to the host and back, for checkpoints.
#pragma once

#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/training_state.h"

namespace arbalest::scheduler {

// Sets state.learners, of which this process gets the vectors of its own learners, and state.optimizer_slots. Takes the
// memory of the vectors that state.learners has. No work may be under way. A call of World's operations if the model is
// split: then there is one learner on each device, and each learner's state gets the parts of all.
void save_learners(const Replicas& replicas, TrainingState& state);

// Sets the weights and the optimizer's state of this process's learners to those of the state, which has as many
// learners. Throws kCheckpoint if the optimizer's vectors are others. No work may be under way.
void restore_learners(const Replicas& replicas, const TrainingState& state);

}  // namespace arbalest::scheduler
