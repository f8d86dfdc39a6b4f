// Asynchronous SGD: learners push gradients to a server as they complete them, and go on from the server's weights.
// With several processes, each process serves one shard of the weights (shards/sharded_pushes.h).
#include <utility>

#include <fmt/format.h>

#include "engine/error.h"
#include "scheduler/diverged.h"
#include "scheduler/scheduler.h"
#include "scheduler/shards/gather_shards.h"
#include "scheduler/shards/sharded_pushes.h"

namespace arbalest::scheduler {

using engine::StepParameters;
using learners::Learner;
using learners::Ticket;

void Scheduler::restart_pushes() {
  const bool has_server = synchronizer_.coupling() == sma::Coupling::kServer;
  const sma::Options& options = synchronizer_.options();
  pushes_.learners.assign(has_server ? learners_.size() : 0, {});
  if (has_server && world_.size() > 1) return restart_sharded();
  for (LearnerPushes& each : pushes_.learners) each.tasks = RingQueue<Ticket>(static_cast<std::size_t>(options.period));
  pushes_.dispatcher.restart(pushes_.learners.size(), options.staleness);
}

void Scheduler::restart_sharded() {
  if (!sharded_) {
    const auto take = [this](const Ticket& ticket, std::size_t learner, dataflow::BatchRing& ring, Progress& results) {
      take_result({ticket, learner, &ring}, results);
    };
    const auto report = [this](std::uint32_t learner, std::uint64_t mini_batch, std::int32_t refused) {
      report_refused(fmt::format("learner {}", learner), mini_batch, refused);
    };
    sharded_ = std::make_unique<ShardedPushes>(world_, pools_.front()->device(), ShardedPushes::Calls{take, report});
  }
  sharded_->restart(synchronizer_, learners_, share_);
  is_gathered_ = true;  // until somebody pushes, all processes have the weights that they give to their servers
}

void Scheduler::advance_pushes(dataflow::BatchRing& ring, Progress& results) {
  restart_at_drops();
  if (world_.size() > 1) {
    is_gathered_ = false;
    sharded_->advance(ring, step_parameters());
    const auto pushes = static_cast<std::uint64_t>(learners());
    batches_ += pushes * static_cast<std::uint64_t>(synchronizer_.options().period);
    rounds_ += pushes;
    results.add(sharded_->take_results());
  } else {
    pushes_.ring = &ring;
    start_pushes(ring, results);
  }
  if (!moving_average_.is_due(progress())) return;
  if (world_.size() > 1) drain_pushes(results);
  gather_model();
  move_averages(false);
}

void Scheduler::start_pushes(dataflow::BatchRing& ring, Progress& results) {
  for (std::size_t started = 0; started < learners_.size(); ++started) {
    // A learner that stands still holds its mini-batches, and the ring hands out no more than it has slots.
    while (!ring.can_hand_out(synchronizer_.options().period)) take_push(results);
    std::optional<std::size_t> number = pushes_.dispatcher.start();
    for (; !number; number = pushes_.dispatcher.start()) take_push(results);
    start_push(ring, *number);
  }
}

void Scheduler::start_push(dataflow::BatchRing& ring, std::size_t number) {
  Learner& learner = *learners_[number];
  LearnerPushes& push = pushes_.learners[number];
  sma::ParameterServer& server = synchronizer_.server();
  const int mini_batches = synchronizer_.options().period;
  server.wait_for_reader(learner.pull(synchronizer_.server_weights(), server.pushed()));
  StepParameters step = step_parameters();
  push.learning_rate = step.learning_rate;
  for (int i = 1; i <= mini_batches; ++i) {
    const auto batch = ring.next();
    ARBALEST_CHECK(batch.has_value());  // training batches never end
    step.task = batch->number;
    Ticket& task = last_tasks_[number];
    task = learner.gradient(*batch, step);
    if (i < mini_batches) {
      learner.update(task, {});
    } else {
      learner.push(task);
    }
    push.tasks.push(task);
  }
  batches_ += static_cast<std::uint64_t>(mini_batches);
  learner.stream().report(pushes_.completions, number);
}

void Scheduler::take_push(Progress& results) {
  const std::size_t number = pushes_.completions.take();
  LearnerPushes& push = pushes_.learners[number];
  check_applied(number);  // the learner has pulled since its last push, so that push has ended
  while (!push.tasks.empty()) take_result({push.tasks.pop(), number, pushes_.ring}, results);
  const std::int64_t staleness = pushes_.dispatcher.complete(number);
  ++results.staleness[staleness];
  synchronizer_.push(number, last_tasks_[number].done,
                     sma::rate_of_push(synchronizer_.options(), push.learning_rate, staleness));
  push.unchecked = last_tasks_[number].task;
  ++rounds_;
}

void Scheduler::drain_pushes(Progress& results) {
  if (pushes_.learners.empty()) return;
  if (world_.size() > 1) {
    sharded_->drain();
    return results.add(sharded_->take_results());
  }
  while (!pushes_.dispatcher.all_are_idle()) take_push(results);
  wait(synchronizer_.server().pushed());
  for (std::size_t j = 0; j < learners_.size(); ++j) check_applied(j);
}

void Scheduler::check_applied(std::size_t number) {
  const std::optional<std::uint64_t> task = std::exchange(pushes_.learners[number].unchecked, std::nullopt);
  if (!task) return;
  const std::int32_t refused = synchronizer_.server().refused(number);
  if (refused == 0) return;
  report_refused(fmt::format("learner {} on {}", number, pools_[pool_of_[number]]->device().name()), *task, refused);
}

void Scheduler::report_refused(const std::string& learner, std::uint64_t mini_batch, std::int32_t refused) {
  report(Diverged(
      fmt::format("training diverged: {}, mini-batch {} (epoch {:.2f}): {} elements of the step that it pushed "
                  "are not finite; {}, or check the data's normalization",
                  learner, mini_batch, epochs_of(mini_batch), refused, divergence_remedy())));
}

void Scheduler::gather_server_weights() {
  if (synchronizer_.coupling() != sma::Coupling::kServer || world_.size() == 1) return;
  if (std::exchange(is_gathered_, true)) return;
  const sma::Shards& shards = synchronizer_.shards();
  const float* own = synchronizer_.server_weights() + shards.of(world_.rank()).begin;
  gather_shards(world_, synchronizer_.server_stream(), shards, VectorElements::kAll, own,
                synchronizer_.server_weights());
}

void Scheduler::forget_pushes() {
  for (LearnerPushes& each : pushes_.learners) {
    while (!each.tasks.empty()) pushes_.ring->release(each.tasks.pop().task);
    each.unchecked.reset();
  }
  pushes_.completions.forget();
  pushes_.dispatcher.restart(pushes_.learners.size(), synchronizer_.options().staleness);
}

void Scheduler::hand_out_server_state() {
  if (pushes_.learners.empty()) return;
  if (world_.size() > 1) return hand_out_shards();
  sma::ParameterServer& server = synchronizer_.server();
  for (Learner* learner : learners_) {
    learner->assign(synchronizer_.server_weights(), server.pushed(), learners::OptimizerState::kKeep);
    for (std::size_t slot = 0; slot < server.state_slots(); ++slot) {
      learner->assign_state(slot, server.state(slot), server.pushed());
    }
    learner->continue_from(server.steps());
  }
  settle();
}

void Scheduler::hand_out_shards() {
  gather_server_weights();
  sma::ParameterServer& server = synchronizer_.server();
  std::vector<std::vector<float>> state(server.state_slots());
  for (std::size_t slot = 0; slot < state.size(); ++slot) {
    state[slot].resize(static_cast<std::size_t>(pools_.front()->training_plan().parameters().trainable_elements()));
    gather_shards(world_, synchronizer_.server_stream(), synchronizer_.shards(), VectorElements::kTrainable,
                  server.state(slot), state[slot].data());
  }
  for (Learner* learner : learners_) {
    learner->assign(synchronizer_.server_weights(), {}, learners::OptimizerState::kKeep);
    for (std::size_t slot = 0; slot < state.size(); ++slot) learner->assign_state(slot, state[slot].data(), {});
    learner->continue_from(server.steps());
  }
  settle();
}

void Scheduler::take_over_state() {
  if (pushes_.learners.empty()) return;
  const std::int64_t begin = synchronizer_.shards().trainable_of(world_.rank()).begin;
  const Learner& first = *learners_.front();
  const engine::Event ready = first.stream().record();
  for (std::size_t slot = 0; slot < first.state().size(); ++slot) {
    synchronizer_.server().set_state(slot, first.state()[slot].values.as<float>() + begin, ready);
  }
  synchronizer_.server().continue_from(first.steps());
}

}  // namespace arbalest::scheduler
