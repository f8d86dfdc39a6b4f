// Everything that later iterations depend on, at a point where no work is under way. A scheduler that restores it goes
// on as if it had never stopped. Vectors are in canonical order, so any device can read them. There is no state of
// random numbers: those follow from the seed and the number of the mini-batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/parameter_layout.h"
#include "scheduler/replicas/loss_watch.h"

namespace arbalest::scheduler {

using Tensors = std::vector<dataflow::NamedTensor>;

struct LearnerState {
  Tensors weights = {};                 // with running statistics
  std::vector<Tensors> optimizer = {};  // by slot, in the order of engine::state_slots; without running statistics
  std::uint64_t steps = 0;              // since the optimizer's state was last zero

  // Whether this process has the vectors. Each process has those of its own learners.
  bool is_here() const noexcept { return !weights.empty(); }
};

struct TrainingState {
  std::uint64_t batches = 0;        // mini-batches trained since the start of the run: the position in the data
  int drops = 0;                    // drops of the learning rate that have taken effect
  int steps_left = 0;               // steps left in the present round, if the central model is assigned
  double averaged_at = 0.0;         // epochs, when the moving average was last updated
  float last_learning_rate = 0.0F;  // at the last averaging; 0: there was none
  std::uint64_t rounds = 0;         // averagings, and steps under s_sgd, since the start of the run
  LossHistory losses = {};          // for the watch on the training loss
  // z under sma and ea_sgd, the only replica, or the replicas' mean. Learners of another number go on from it.
  Tensors model = {};
  Tensors central = {};         // z of the round under way, if the central model is assigned; empty: equal to the model
  Tensors central_before = {};  // z of the round before that; empty: the scheme needs none
  Tensors velocity = {};        // of Nesterov's rule; empty: the scheme needs none
  Tensors average = {};         // moving average of the model; empty: the job has none
  std::vector<std::string> optimizer_slots = {};  // names of each learner's optimizer vectors: "momentum"
  std::vector<LearnerState> learners = {};        // by number over all devices of all processes
};

}  // namespace arbalest::scheduler
