// Copies a scheduler's state to the host and back, for checkpoints.
#include <algorithm>
#include <utility>

#include "engine/error.h"
#include "scheduler/scheduler.h"

namespace arbalest::scheduler {

using dataflow::ParameterLayout;
using dataflow::VectorPart;
using learners::Learner;
using learners::LearnerPool;

// Copies to the host read memory that the streams' work writes, so this work must have ended.
void Scheduler::settle() {
  ARBALEST_CHECK(tasks_.empty() && strides_.empty());
  synchronizer_.settle();
  for (Learner* learner : learners_) wait(learner->stream().record());
}

void Scheduler::verify_copies() {
  settle();
  if (options_.compare_rounds == 0) return;
  record_ready();
  if (synchronizer_.compare_copies(ready_)) check_copies({.round = rounds_, .batches = batches_});
}

TrainingState Scheduler::save(TrainingState memory) {
  verify_copies();
  hand_out_server_state();
  const bool right_after_averaging = is_right_after_averaging();
  if (gather_model()) wait(synchronizer_.ticket().done);
  const ParameterLayout& layout = pools_.front()->training_plan().parameters();

  TrainingState state{.batches = batches_,
                      .drops = drops_,
                      .steps_left = steps_left_,
                      .averaged_at = moving_average_.last(),
                      .last_learning_rate = synchronizer_.last_learning_rate(),
                      .rounds = rounds_,
                      .model = std::move(memory.model),
                      .center = std::move(memory.center),
                      .center_before = std::move(memory.center_before),
                      .velocity = std::move(memory.velocity),
                      .average = std::move(memory.average),
                      .learners = std::move(memory.learners)};
  if (loss_watch_) state.losses = loss_watch_->history();
  save_center(state, right_after_averaging);
  for (const learners::StateSlot& slot : learners_.front()->state()) state.optimizer_slots.push_back(slot.name);
  std::vector<LearnerState> before =
      std::exchange(state.learners, std::vector<LearnerState>(static_cast<std::size_t>(share_.all)));
  before.resize(learners_.size());
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    engine::Device& device = pools_[pool_of_[j]]->device();
    LearnerState& learner = state.learners[static_cast<std::size_t>(share_.first) + j];
    learner = std::move(before[j]);
    learner.weights =
        layout.to_canonical(device, learners_[j]->weights(), VectorPart::kAll, std::move(learner.weights));
    const std::span<const learners::StateSlot> slots = learners_[j]->state();
    learner.optimizer.resize(slots.size());
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      Tensors& vector = learner.optimizer[slot];
      vector = layout.to_canonical(device, slots[slot].values.as<float>(), VectorPart::kTrainable, std::move(vector));
    }
    learner.steps = learners_[j]->steps();
  }
  return state;
}

// Copies what all devices of all processes hold alike. Vectors that this state lacks become empty.
void Scheduler::save_center(TrainingState& state, bool right_after_averaging) {
  LearnerPool& first = *pools_.front();
  const ParameterLayout& layout = first.training_plan().parameters();
  const auto read = [&](Tensors& tensors, const float* vector) {
    tensors = vector == nullptr ? Tensors()
                                : layout.to_canonical(first.device(), vector, VectorPart::kAll, std::move(tensors));
  };
  const bool is_first = world_.rank() == 0;
  const bool is_assigned = synchronizer_.coupling() == sma::Coupling::kAssign;
  const bool has_center = is_first && (is_assigned || synchronizer_.coupling() == sma::Coupling::kPull);
  const sma::CenterView center = has_center ? synchronizer_.center_view(0) : sma::CenterView{};
  read(state.model, is_first ? synchronizer_.model(0) : nullptr);
  read(state.center, is_assigned && !right_after_averaging ? center.present : nullptr);
  read(state.center_before, center.before);
  read(state.velocity, center.velocity);
  read(state.average, is_first && moving_average_.exists() ? first.evaluation_weights() : nullptr);
}

void Scheduler::restore(const TrainingState& state, const sma::Options& synchronization, RateScaling scaling,
                        std::span<const int> learners) {
  ARBALEST_CHECK(learners.size() == pools_.size());
  abandon();
  settle();
  options_.learning_rate.with_learners = scaling;
  for (std::size_t p = 0; p < pools_.size(); ++p) pools_[p]->activate(learners[p]);
  collect_learners();
  bind(synchronization);
  load(state.model);
  batches_ = state.batches;
  rounds_ = state.rounds;
  equal_at_ = 0;
  drops_ = state.drops;
  if (loss_watch_) loss_watch_->continue_from(state.losses);
  if (!state.average.empty() && moving_average_.exists()) {
    moving_average_.continue_from(state.averaged_at);
    for (const auto& pool : pools_) {
      pool->training_plan().parameters().from_canonical(pool->device(), state.average, pool->evaluation_weights());
    }
  }
  if (state.learners.size() == static_cast<std::size_t>(share_.all)) {
    restore_replicas(state);
  } else {
    for (Learner* learner : learners_) learner->zero_state();
  }
  verify_copies();
}

// All learners were saved with the server's state.
void Scheduler::restore_server(const LearnerState& state) {
  LearnerPool& first = *pools_.front();
  sma::ParameterServer& server = synchronizer_.server();
  for (std::size_t slot = 0; slot < server.state_slots(); ++slot) {
    first.training_plan().parameters().from_canonical(first.device(), state.optimizer[slot], server.state(slot),
                                                      VectorPart::kTrainable);
  }
  server.continue_from(state.steps);
}

void Scheduler::restore_replicas(const TrainingState& state) {
  const ParameterLayout& layout = pools_.front()->training_plan().parameters();
  steps_left_ = state.steps_left;
  synchronizer_.continue_from(state.last_learning_rate);
  for (std::size_t p = 0; p < pools_.size() && !state.center_before.empty(); ++p) {
    engine::Device& device = pools_[p]->device();
    const sma::CenterView center = synchronizer_.center_view(p);
    if (!state.center.empty()) layout.from_canonical(device, state.center, center.present);
    layout.from_canonical(device, state.center_before, center.before);
    if (!state.velocity.empty()) layout.from_canonical(device, state.velocity, center.velocity);
  }
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    engine::Device& device = pools_[pool_of_[j]]->device();
    Learner& learner = *learners_[j];
    const std::size_t number = static_cast<std::size_t>(share_.first) + j;
    const LearnerState& saved = state.learners[number];
    if (saved.optimizer.size() != learner.state().size()) {
      engine::fail(engine::ErrorKind::kCheckpoint,
                   "learner {} was saved with {} vectors of its optimizer; the job's has {}", number,
                   saved.optimizer.size(), learner.state().size());
    }
    layout.from_canonical(device, saved.weights, learner.weights());
    if (j == 0 && synchronizer_.coupling() == sma::Coupling::kServer) restore_server(saved);
    for (std::size_t slot = 0; slot < saved.optimizer.size(); ++slot) {
      layout.from_canonical(device, saved.optimizer[slot], learner.state()[slot].values.as<float>(),
                            VectorPart::kTrainable);
    }
    learner.continue_from(saved.steps);
    learner.weights_were_set();
  }
}

}  // namespace arbalest::scheduler
