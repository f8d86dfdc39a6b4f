#include "scheduler/replicas/replicas.h"

#include <algorithm>

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
  teams_.clear();
  team_of_.clear();
  ready_.clear();
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    for (const auto& team : pools_[p]->teams()) {
      teams_.push_back({team.get(), p, learners_.size()});
      for (const auto& learner : team->learners()) {
        learners_.push_back(learner.get());
        pool_of_.push_back(p);
        team_of_.push_back(team.get());
      }
    }
    ready_.emplace_back(pools_[p]->learners().size());
  }
  share_ = share_of(static_cast<int>(learners_.size()), world_);
  last_tasks_.assign(learners_.size(), {});
  parts_.assign(teams_.size(), std::vector<Event>(gradient_parts().size()));
  tasks_ = RingQueue<Task>(learners_.size() * static_cast<std::size_t>(pools_.front()->result_slots()));
}

Learner& Replicas::first_of(std::size_t pool) const {
  return *learners_[static_cast<std::size_t>(std::ranges::find(pool_of_, pool) - pool_of_.begin())];
}

void Replicas::take_share(dataflow::BatchRing& ring, std::uint64_t first) const {
  if (world_.size() > 1 && ring.share() != share_) ring.restart(first, share_);
}

std::vector<sma::ReplicaVectors> Replicas::vectors() const {
  std::vector<sma::ReplicaVectors> vectors;
  for (const auto& pool : pools_) {
    sma::ReplicaVectors& of_pool = vectors.emplace_back();
    of_pool.state.resize(pool->state_slots());
    for (const Learner* learner : pool->learners()) {
      of_pool.weights.push_back(learner->weights());
      of_pool.gradients.push_back(learner->gradient());
      for (std::size_t slot = 0; slot < of_pool.state.size(); ++slot) {
        of_pool.state[slot].push_back(learner->state()[slot].values);
      }
    }
  }
  return vectors;
}

void Replicas::enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step, bool has_parts) {
  batches_.clear();
  const auto take_up_to = [&](std::size_t count) {
    while (batches_.size() < count) {
      const auto batch = ring.next();
      ARBALEST_CHECK(batch.has_value());  // training batches never end
      batches_.push_back(*batch);
    }
  };
  // Learners of a split model that have work wait for the others, so all batches are taken first.
  if (exchange() != nullptr) take_up_to(size());
  for (std::size_t t = 0; t < teams_.size(); ++t) {
    const PlacedTeam& each = teams_[t];
    take_up_to(each.first + each.team->size());
    each.team->gradient(each.part_of(batches_), step, each.part_of(last_tasks_),
                        has_parts ? std::span(parts_[t]) : std::span<Event>());
  }
}

// These use the lists of this class and not the pools', to which another thread may add prepared learners meanwhile.
void Replicas::fill_ready(const std::function<Event(std::size_t team)>& event_of) {
  for (std::vector<Event>& of_pool : ready_) of_pool.clear();
  for (std::size_t t = 0; t < teams_.size(); ++t) {
    std::vector<Event>& of_pool = ready_[teams_[t].pool];
    of_pool.insert(of_pool.end(), teams_[t].team->size(), event_of(t));
  }
}

Replicas::EventsByPool Replicas::part_ready(std::size_t part) {
  fill_ready([&](std::size_t team) { return parts_[team][part]; });
  return ready_;
}

void Replicas::enqueue_updates(dataflow::BatchRing& ring, std::span<const Event> after) {
  for (const PlacedTeam& each : teams_) {
    each.team->update(each.part_of(last_tasks_), after.empty() ? Event{} : after[each.pool]);
  }
  for (std::size_t j = 0; j < size(); ++j) tasks_.push({last_tasks_[j], j, &ring});
}

Replicas::EventsByPool Replicas::record() {
  fill_ready([&](std::size_t team) { return teams_[team].team->stream().record(); });
  return ready_;
}

void Replicas::wait_for(std::span<const Event> events, const char* label) {
  for (const PlacedTeam& each : teams_) each.team->stream().wait(events[each.pool], label);
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
  for (const PlacedTeam& each : teams_) {
    try {
      engine::wait_for(collective_, each.team->stream().record());  // which ends a collective that waits, too
    } catch (const engine::Error& error) {
      if (error.kind() != engine::ErrorKind::kPeer) throw;
    }
  }
  throw;
}

void Replicas::settle() {
  for (const PlacedTeam& each : teams_) wait(each.team->stream().record());
}

void Replicas::drain() noexcept {
  for (const PlacedTeam& each : teams_) engine::drain(each.team->stream());
  while (!tasks_.empty()) {
    const Task task = tasks_.pop();
    task.ring->release(task.ticket.task);
  }
}

}  // namespace arbalest::scheduler
