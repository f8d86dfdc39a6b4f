#include "learners/learner.h"

#include "engine/waiting.h"

namespace arbalest::learners {

namespace {

std::size_t bytes_of(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(float); }

}  // namespace

void Learner::weights_were_set() {
  if (replica_.rounded == nullptr) return;
  round_weights(stream_, parameters_, replica_);
  engine::wait_for(stream_);
}

engine::Event Learner::assign(const float* weights, const engine::Event& ready, OptimizerState state) {
  stream_.wait(ready, "wait for new weights");
  stream_.copy(replica_.weights, weights, bytes_of(parameters_.elements()), "assign weights");
  round_weights(stream_, parameters_, replica_);
  if (state == OptimizerState::kZero) zero_state();
  return stream_.record();
}

void Learner::zero_state() {
  for (const StateSlot& slot : replica_.state) {
    stream_.fill_zero(slot.values, bytes_of(parameters_.trainable_elements()), "restart optimizer state");
  }
  steps_ = 0;
}

void Learner::assign_state(std::size_t slot, const float* values, const engine::Event& ready) {
  stream_.wait(ready, "wait for new optimizer state");
  stream_.copy(replica_.state[slot].values, values, bytes_of(parameters_.trainable_elements()),
               "assign optimizer state");
}

}  // namespace arbalest::learners
