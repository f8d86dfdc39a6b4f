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

dataflow::DeviceVector Scheduler::on_device(std::size_t pool, const float* vector) const {
  return {&pools_[pool]->training_plan().parameters(), &pools_[pool]->device(), vector};
}

Tensors Scheduler::gather_parts(VectorPart part, const PoolVector& vector_of) const {
  if (exchange() == nullptr) return {};
  std::vector<dataflow::DeviceVector> vectors;
  for (std::size_t p = 0; p < pools_.size(); ++p) vectors.push_back(on_device(p, vector_of(p)));
  return dataflow::gather_parts(vectors, part, world_);
}

Tensors Scheduler::whole(const PoolVector& vector_of, Tensors memory) const {
  const Tensors parts = gather_parts(VectorPart::kAll, vector_of);
  return dataflow::whole_tensors(on_device(0, vector_of(0)), VectorPart::kAll, parts, std::move(memory));
}

TrainingState Scheduler::save(TrainingState memory) {
  verify_copies();
  hand_out_server_state();
  const bool right_after_averaging = is_right_after_averaging();
  if (gather_model()) synchronizer_.settle();  // on all devices, each of which may have a part of the model
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
  save_learners(state);
  return state;
}

// A split model has one learner on each device, and each learner's state gets the parts of all.
void Scheduler::save_learners(TrainingState& state) {
  std::vector<LearnerState> before =
      std::exchange(state.learners, std::vector<LearnerState>(static_cast<std::size_t>(share_.all)));
  before.resize(learners_.size());
  const auto first = state.learners.begin() + share_.first;
  std::ranges::move(before, first);
  const Tensors weights = gather_parts(VectorPart::kAll, [&](std::size_t p) { return learners_[p]->weights(); });
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    LearnerState& learner = first[static_cast<std::ptrdiff_t>(j)];
    learner.weights = dataflow::whole_tensors(on_device(pool_of_[j], learners_[j]->weights()), VectorPart::kAll,
                                              weights, std::move(learner.weights));
    learner.optimizer.resize(learners_[j]->state().size());
    learner.steps = learners_[j]->steps();
  }
  for (std::size_t slot = 0; slot < learners_.front()->state().size(); ++slot) {
    const auto vector_of = [&](std::size_t j) { return learners_[j]->state()[slot].values.as<float>(); };
    const Tensors parts = gather_parts(VectorPart::kTrainable, vector_of);
    for (std::size_t j = 0; j < learners_.size(); ++j) {
      Tensors& saved = first[static_cast<std::ptrdiff_t>(j)].optimizer[slot];
      saved = dataflow::whole_tensors(on_device(pool_of_[j], vector_of(j)), VectorPart::kTrainable, parts,
                                      std::move(saved));
    }
  }
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
  // All processes give their parts of a split model.
  const auto read_whole = [&](Tensors& tensors, const PoolVector& vector_of) {
    if (!is_first) {
      static_cast<void>(gather_parts(VectorPart::kAll, vector_of));
      tensors = {};
      return;
    }
    tensors = whole(vector_of, std::move(tensors));
  };
  const bool is_assigned = synchronizer_.coupling() == sma::Coupling::kAssign;
  const bool has_center = is_first && (is_assigned || synchronizer_.coupling() == sma::Coupling::kPull);
  const sma::CenterView center = has_center ? synchronizer_.center_view(0) : sma::CenterView{};
  read_whole(state.model, [&](std::size_t p) { return synchronizer_.model(p); });
  read(state.center, is_assigned && !right_after_averaging ? center.present : nullptr);
  read(state.center_before, center.before);
  read(state.velocity, center.velocity);
  if (!moving_average_.exists()) state.average = {};
  if (moving_average_.exists()) {
    read_whole(state.average, [&](std::size_t p) { return pools_[p]->evaluation_weights(); });
  }
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

void Scheduler::restore_replicas(const TrainingState& state) {
  steps_left_ = state.steps_left;
  synchronizer_.continue_from(state.last_learning_rate);
  for (std::size_t p = 0; p < pools_.size() && !state.center_before.empty(); ++p) {
    engine::Device& device = pools_[p]->device();
    const ParameterLayout& layout = pools_[p]->training_plan().parameters();
    const sma::CenterView center = synchronizer_.center_view(p);
    if (!state.center.empty()) layout.from_canonical(device, state.center, center.present);
    layout.from_canonical(device, state.center_before, center.before);
    if (!state.velocity.empty()) layout.from_canonical(device, state.velocity, center.velocity);
  }
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    engine::Device& device = pools_[pool_of_[j]]->device();
    const ParameterLayout& layout = pools_[pool_of_[j]]->training_plan().parameters();
    Learner& learner = *learners_[j];
    const std::size_t number = static_cast<std::size_t>(share_.first) + j;
    const LearnerState& saved = state.learners[number];
    if (saved.optimizer.size() != learner.state().size()) {
      engine::fail(engine::ErrorKind::kCheckpoint,
                   "learner {} was saved with {} vectors of its optimizer; the job's has {}", number,
                   saved.optimizer.size(), learner.state().size());
    }
    layout.from_canonical(device, saved.weights, learner.weights());
    for (std::size_t slot = 0; slot < saved.optimizer.size(); ++slot) {
      layout.from_canonical(device, saved.optimizer[slot], learner.state()[slot].values.as<float>(),
                            VectorPart::kTrainable);
    }
    learner.continue_from(saved.steps);
    learner.weights_were_set();
  }
  take_over_state();  // all learners were saved with the server's
}

}  // namespace arbalest::scheduler
