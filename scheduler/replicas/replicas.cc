#include "scheduler/replicas/replicas.h"

#include "engine/base/error.h"
#include "engine/process/all_gather.h"
#include "engine/waiting.h"

namespace arbalest::scheduler {

using engine::Event;
using learners::Learner;
using learners::LearnerPool;

dataflow::BatchShare share_of(int own, engine::process::World& world) {
  dataflow::BatchShare share{.first = 0, .count = own, .all = 0};
  const std::vector<double> counts = engine::process::all_gather(world, own);
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const int count = static_cast<int>(counts[rank]);
    if (static_cast<int>(rank) < world.rank()) share.first += count;
    share.all += count;
  }
  return share;
}

Replicas::Replicas(std::span<const std::unique_ptr<LearnerPool>> pools, engine::Collective& collective,
                   engine::process::World& world)
    : pools_(pools), collective_(collective), world_(world) {
  collect();
}

void Replicas::activate(std::span<const int> learners) {
  ARBALEST_CHECK(tasks_.empty() && learners.size() == pools_.size());
  for (std::size_t p = 0; p < pools_.size(); ++p) pools_[p]->activate(learners[p]);
  collect();
}

void Replicas::collect() {
  learners_.clear();
  pool_of_.clear();
  ready_.clear();
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    for (const auto& learner : pools_[p]->learners()) {
      learners_.push_back(learner.get());
      pool_of_.push_back(p);
    }
    ready_.emplace_back(pools_[p]->learners().size());
  }
  share_ = share_of(static_cast<int>(learners_.size()), world_);
  last_tasks_.assign(learners_.size(), {});
  parts_.assign(learners_.size(), std::vector<Event>(learners_.front()->gradient_parts().size()));
  tasks_ = RingQueue<Task>(learners_.size() * static_cast<std::size_t>(pools_.front()->result_slots()));
}

void Replicas::take_share(dataflow::BatchRing& ring, std::uint64_t first) const {
  if (world_.size() > 1 && ring.share() != share_) ring.restart(first, share_);
}

std::vector<sma::ReplicaVectors> Replicas::vectors() const {
  std::vector<sma::ReplicaVectors> vectors;
  for (const auto& pool : pools_) {
    sma::ReplicaVectors& of_pool = vectors.emplace_back();
    of_pool.state.resize(pool->state_slots());
    for (const auto& learner : pool->learners()) {
      of_pool.weights.push_back(learner->weights());
      of_pool.gradients.push_back(learner->gradient());
      for (std::size_t slot = 0; slot < of_pool.state.size(); ++slot) {
        of_pool.state[slot].push_back(learner->state()[slot].values.as<float>());
      }
    }
  }
  return vectors;
}

void Replicas::enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step, bool has_parts) {
  const auto next = [&] {
    const auto batch = ring.next();
    ARBALEST_CHECK(batch.has_value());  // training batches never end
    return *batch;
  };
  if (exchange() == nullptr) {
    for (std::size_t j = 0; j < size(); ++j) enqueue_gradient(j, next(), step, has_parts);
    return;
  }
  // Learners of a split model that have work wait for the others, so all batches are taken first.
  together_.clear();
  while (together_.size() < size()) together_.push_back(next());
  for (std::size_t j = 0; j < size(); ++j) enqueue_gradient(j, together_[j], step, has_parts);
}

void Replicas::enqueue_gradient(std::size_t learner, const dataflow::Batch& batch, const engine::StepParameters& step,
                                bool has_parts) {
  engine::StepParameters parameters = step;
  parameters.task = batch.number;
  last_tasks_[learner] =
      learners_[learner]->gradient(batch, parameters, has_parts ? std::span(parts_[learner]) : std::span<Event>());
}

Replicas::EventsByPool Replicas::part_ready(std::size_t part) {
  for (std::size_t p = 0, j = 0; p < ready_.size(); ++p) {
    for (Event& ready : ready_[p]) ready = parts_[j++][part];
  }
  return ready_;
}

void Replicas::enqueue_updates(dataflow::BatchRing& ring, std::span<const Event> after) {
  for (std::size_t j = 0; j < size(); ++j) {
    learners_[j]->update(last_tasks_[j], after.empty() ? Event{} : after[pool_of_[j]]);
    tasks_.push({last_tasks_[j], j, &ring});
  }
}

Replicas::EventsByPool Replicas::record() {
  for (std::size_t p = 0, j = 0; p < ready_.size(); ++p) {
    for (Event& ready : ready_[p]) ready = learners_[j++]->stream().record();
  }
  return ready_;
}

void Replicas::wait_for(std::span<const Event> events, const char* label) {
  for (std::size_t j = 0; j < size(); ++j) learners_[j]->stream().wait(events[pool_of_[j]], label);
}

void Replicas::assign(const sma::CentralModel& central, std::span<const Event> ready, learners::OptimizerState state) {
  for (std::size_t j = 0; j < size(); ++j) {
    const std::size_t p = pool_of_[j];
    learners_[j]->assign(central.present(p), ready.empty() ? Event{} : ready[p], state);
  }
}

void Replicas::wait(const Event& event) {
  try {
    engine::wait_for(collective_, event);
  } catch (const engine::Error&) {
    // If a device failed, its learners' streams know which work failed.
    if (exchange() == nullptr) {
      for (const learners::Ticket& ticket : last_tasks_) {
        if (ticket.done.is_complete()) engine::wait_for(ticket.done);
      }
    }
    rethrow_cause();
  }
}

void Replicas::rethrow_cause() {
  if (exchange() == nullptr) throw;
  exchange()->break_up();  // other devices may wait for the one that failed
  for (const Learner* learner : learners_) {
    try {
      engine::wait_for(collective_, learner->stream().record());  // which ends a collective that waits, too
    } catch (const engine::Error& error) {
      if (error.kind() != engine::ErrorKind::kPeer) throw;
    }
  }
  throw;
}

void Replicas::settle() {
  for (const Learner* learner : learners_) wait(learner->stream().record());
}

void Replicas::drain() noexcept {
  for (const Learner* learner : learners_) engine::drain(learner->stream());
  while (!tasks_.empty()) {
    const Task task = tasks_.pop();
    task.ring->release(task.ticket.task);
  }
}

}  // namespace arbalest::scheduler
