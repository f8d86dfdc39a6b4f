// The replicas of this process and the work on them: which learner trains where, what each has under way, and what
// enqueues the same for all of them. Learners train in teams (learners/team.h): the rounds (scheduler/rounds) see only
// steps of all replicas, and only those with a server ask which stream runs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/batches/batch_share.h"
#include "engine/collective.h"
#include "engine/process/world.h"
#include "learners/learner_pool.h"
#include "scheduler/replicas/ring_queue.h"
#include "sma/central_model.h"

namespace arbalest::scheduler {

// A mini-batch that a learner trains on.
struct Task {
  learners::Ticket ticket;
  std::size_t learner = 0;              // number over all devices of this process
  dataflow::BatchRing* ring = nullptr;  // the ring that its batch came from
};

// A team among those of all devices of this process.
struct PlacedTeam {
  learners::Team* team = nullptr;
  std::size_t pool = 0;
  std::size_t first = 0;  // number of its first learner

  // Returns what a list by learner holds for the team's.
  template <typename T>
  std::span<T> part_of(std::vector<T>& of_learners) const {
    return std::span(of_learners).subspan(first, team->size());
  }
};

class Replicas {
 public:
  // Events by pool, then by learner of the pool.
  using EventsByPool = std::span<const std::vector<engine::Event>>;

  // The learners of the pools (one per device), which must have been created. Pools, collective and `world` must
  // outlive the replicas. All processes of `world` must call it, and activate().
  Replicas(std::span<const std::unique_ptr<learners::LearnerPool>> pools, engine::Collective& collective,
           engine::process::World& world);

  // Makes learners[p] prepared learners of each pool the active ones; no work may be under way.
  void activate(std::span<const int> learners);

  std::size_t size() const noexcept { return learners_.size(); }
  learners::Learner& operator[](std::size_t learner) const { return *learners_[learner]; }
  std::span<learners::Learner* const> all() const noexcept { return learners_; }
  std::size_t pool_of(std::size_t learner) const { return pool_of_[learner]; }
  // The first learner of a pool.
  learners::Learner& first_of(std::size_t pool) const;
  // The teams, in the order of their learners.
  std::span<const PlacedTeam> teams() const noexcept { return teams_; }
  // The team of a learner. With a server every team has one learner.
  learners::Team& team_of(std::size_t learner) const { return *team_of_[learner]; }
  // The parts of a gradient, equal for all learners.
  std::span<const dataflow::GradientPart> gradient_parts() const { return teams_.front().team->gradient_parts(); }
  std::span<const std::unique_ptr<learners::LearnerPool>> pools() const noexcept { return pools_; }
  learners::LearnerPool& pool(std::size_t pool) const { return *pools_[pool]; }
  engine::process::World& world() const noexcept { return world_; }
  // The learners of this process among those of all.
  const dataflow::BatchShare& share() const noexcept { return share_; }
  // Makes `ring` hand out the mini-batches of this process, from number `first` on, if it does not yet.
  void take_share(dataflow::BatchRing& ring, std::uint64_t first) const;
  // The devices of a split model; null if the model is not split.
  engine::ExchangeGroup* exchange() const { return pools_.front()->exchange(); }
  // The vectors that averaging reads, by pool.
  std::vector<sma::ReplicaVectors> vectors() const;

  // Enqueues the gradient of the next mini-batch for every learner. `has_parts`: part_ready() will be called.
  void enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step, bool has_parts = false);
  // By pool and learner: the event after which a part of the gradient (gradient_parts) is final. Valid until
  // the next call of this or of record().
  EventsByPool part_ready(std::size_t part);
  // Enqueues the update after each gradient, once after[p] has passed; `after` may be empty. The tasks are then queued.
  void enqueue_updates(dataflow::BatchRing& ring, std::span<const engine::Event> after = {});
  // By pool and learner: the event after all work that was enqueued so far. Valid until the next call.
  EventsByPool record();
  // Later work of every learner waits for the event of its pool.
  void wait_for(std::span<const engine::Event> events, const char* label);
  // Enqueues, once ready[p] has passed (`ready` may be empty), copies of z to the weights of every learner.
  void assign(const sma::CentralModel& central, std::span<const engine::Event> ready, learners::OptimizerState state);

  // Enqueued training tasks whose results were not taken, oldest first.
  RingQueue<Task>& tasks() noexcept { return tasks_; }
  // The last gradient of a learner.
  learners::Ticket& last_task(std::size_t learner) { return last_tasks_[learner]; }

  // Blocks the host until `event` has passed. Throws the first error of the work before it.
  void wait(const engine::Event& event);
  // Call while an exception is handled. Ends the exchanges of a split model, in which other devices may wait for the
  // one that failed. Throws the error of a device of this process, if one failed, or else the exception: a device whose
  // peer has failed knows only that.
  [[noreturn]] void rethrow_cause();
  // Blocks the host until all learners are idle; drain() does so whatever has failed, and forgets their tasks.
  void settle();
  void drain() noexcept;

 private:
  void collect();
  // Sets ready_ for every learner to the event of its team.
  void fill_ready(const std::function<engine::Event(std::size_t team)>& event_of);

  std::span<const std::unique_ptr<learners::LearnerPool>> pools_;
  engine::Collective& collective_;
  engine::process::World& world_;
  std::vector<learners::Learner*> learners_;  // of all pools, by number
  std::vector<std::size_t> pool_of_;          // by learner
  std::vector<PlacedTeam> teams_;
  std::vector<learners::Team*> team_of_;  // by learner
  dataflow::BatchShare share_;
  RingQueue<Task> tasks_{0};
  std::vector<std::vector<engine::Event>> ready_;  // by pool and learner
  std::vector<std::vector<engine::Event>> parts_;  // by team: pass when the parts of its gradients are final
  std::vector<dataflow::Batch> batches_;           // by learner: being enqueued
  std::vector<learners::Ticket> last_tasks_;       // by learner
};

// The place of `own` learners of this process among those of all processes, each of which calls this.
dataflow::BatchShare share_of(int own, engine::process::World& world);

}  // namespace arbalest::scheduler
