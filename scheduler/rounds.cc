// Enqueues the learners' work, as required by the coupling of their rounds.
#include <algorithm>

#include "engine/error.h"
#include "scheduler/scheduler.h"

namespace arbalest::scheduler {

using engine::StepParameters;
using learners::Learner;
using learners::OptimizerState;

void Scheduler::enqueue_stride(dataflow::BatchRing& ring) {
  restart_at_drops();
  const std::size_t tasks = tasks_.size();
  const std::size_t averagings = averagings_.size();
  switch (synchronizer_.coupling()) {
    case sma::Coupling::kNone:
    case sma::Coupling::kShared:
      enqueue_steps(ring, synchronizer_.options().steps_per_stride(), step_parameters());
      break;
    case sma::Coupling::kPull:
      enqueue_pulled_round(ring);
      break;
    case sma::Coupling::kAssign:
      enqueue_assigned_step(ring);
      break;
    case sma::Coupling::kGradient:
      enqueue_reduced_step(ring);
      break;
    case sma::Coupling::kServer:
      ARBALEST_CHECK(false);  // it has no strides: advance_pushes
      break;
  }
  const bool averages = averagings_.size() > averagings;
  const bool ends_round = averages || synchronizer_.coupling() == sma::Coupling::kGradient;
  if (ends_round) ++rounds_;
  strides_.push({.tasks = tasks_.size() - tasks,
                 .averages = averages,
                 .measures = measure_gradients(),
                 .compares = ends_round && compare_copies(),
                 .round = rounds_,
                 .batches = batches_});
  // Within a round there is no center to add to the average.
  if (!moving_average_.is_due(progress()) || steps_left_ > 0) return;
  gather_model();
  move_averages(false);
  if (synchronizer_.coupling() == sma::Coupling::kShared) {
    for (Learner* learner : learners_) learner->stream().wait(evaluation_ready_.front(), "wait for the moving average");
  }
}

StepParameters Scheduler::step_parameters() const { return {.seed = options_.seed, .learning_rate = learning_rate()}; }

void Scheduler::enqueue_pulled_round(dataflow::BatchRing& ring) {
  const StepParameters local = step_parameters();
  enqueue_steps(ring, synchronizer_.options().period - 1, local);
  StepParameters pulled = local;
  pulled.pull = synchronizer_.pull();
  pulled.reference = static_cast<std::uint32_t>(synchronizer_.reference());
  record_ready();
  enqueue_gradients(ring, pulled);
  const std::span<const engine::Event> read = synchronizer_.synchronize(ready_, local.learning_rate);
  averagings_.push(synchronizer_.ticket());
  enqueue_updates(ring, read);
}

void Scheduler::enqueue_assigned_step(dataflow::BatchRing& ring) {
  const StepParameters step = step_parameters();
  if (steps_left_ == 0) {
    const auto half_an_epoch = static_cast<int>(options_.batches_per_epoch / (2 * learners()));
    steps_left_ = synchronizer_.options().period_at(static_cast<double>(step.learning_rate), half_an_epoch);
  }
  enqueue_steps(ring, 1, step);
  if (--steps_left_ > 0) return;
  record_ready();
  const std::span<const engine::Event> assignable = synchronizer_.synchronize(ready_, step.learning_rate);
  averagings_.push(synchronizer_.ticket());
  const sma::LocalState state = synchronizer_.options().local_state;
  assign_center(assignable, state == sma::LocalState::kZero ? OptimizerState::kZero : OptimizerState::kKeep);
  if (state != sma::LocalState::kAverage) return;
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    for (std::size_t slot = 0; slot < learners_[j]->state().size(); ++slot) {
      learners_[j]->assign_state(slot, synchronizer_.mean_state(pool_of_[j], slot), assignable[pool_of_[j]]);
    }
  }
}

void Scheduler::enqueue_reduced_step(dataflow::BatchRing& ring) {
  enqueue_gradients(ring, step_parameters());
  const std::span<const dataflow::GradientPart> parts = learners_.front()->gradient_parts();
  for (std::size_t part = 0; part < parts.size(); ++part) {
    for (std::size_t p = 0, j = 0; p < ready_.size(); ++p) {
      for (engine::Event& ready : ready_[p]) ready = parts_[j++][part];
    }
    synchronizer_.reduce_gradients(ready_, parts[part].begin, parts[part].end);
  }
  enqueue_updates(ring, synchronizer_.reduced());
}

void Scheduler::enqueue_steps(dataflow::BatchRing& ring, int steps, const StepParameters& each) {
  for (int step = 0; step < steps; ++step) {
    enqueue_gradients(ring, each);
    enqueue_updates(ring, {});
  }
}

void Scheduler::enqueue_gradients(dataflow::BatchRing& ring, const StepParameters& step) {
  if (exchange() != nullptr) {
    enqueue_together(ring, step);
  } else {
    for (std::size_t j = 0; j < learners_.size(); ++j) {
      const auto batch = ring.next();
      ARBALEST_CHECK(batch.has_value());  // training batches never end
      enqueue_gradient(j, *batch, step);
    }
  }
  batches_ += static_cast<std::uint64_t>(learners());
}

void Scheduler::enqueue_together(dataflow::BatchRing& ring, const StepParameters& step) {
  together_.clear();
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    const auto batch = ring.next();
    ARBALEST_CHECK(batch.has_value());
    together_.push_back(*batch);
  }
  for (std::size_t j = 0; j < learners_.size(); ++j) enqueue_gradient(j, together_[j], step);
}

void Scheduler::enqueue_gradient(std::size_t learner, const dataflow::Batch& batch, const StepParameters& step) {
  const bool reduces = synchronizer_.coupling() == sma::Coupling::kGradient;
  StepParameters parameters = step;
  parameters.task = batch.number;
  last_tasks_[learner] = learners_[learner]->gradient(
      batch, parameters, reduces ? std::span(parts_[learner]) : std::span<engine::Event>());
}

void Scheduler::enqueue_updates(dataflow::BatchRing& ring, std::span<const engine::Event> after) {
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    learners_[j]->update(last_tasks_[j], after.empty() ? engine::Event{} : after[pool_of_[j]]);
    tasks_.push({last_tasks_[j], j, &ring});
  }
}

void Scheduler::record_ready() {
  for (std::size_t p = 0, j = 0; p < ready_.size(); ++p) {
    for (engine::Event& ready : ready_[p]) ready = learners_[j++]->stream().record();
  }
}

void Scheduler::restart_at_drops() {
  const int drops = options_.learning_rate.drops_before(progress()) + extra_drops_;
  if (drops == drops_) return;
  drops_ = drops;
  if (synchronizer_.coupling() != sma::Coupling::kPull) return;
  record_ready();
  assign_center(synchronizer_.restart(ready_, false), OptimizerState::kZero);
}

void Scheduler::assign_center(std::span<const engine::Event> ready, OptimizerState state) {
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    const std::size_t p = pool_of_[j];
    const engine::Event read =
        learners_[j]->assign(synchronizer_.center(p), ready.empty() ? engine::Event{} : ready[p], state);
    if (synchronizer_.coupling() == sma::Coupling::kServer) synchronizer_.server().wait_for_reader(read);
  }
}

bool Scheduler::measure_gradients() {
  // A measurement reads every gradient once more and makes learners wait for it, so only one of kEvery strides is
  // measured. The single learner of a process needs two measurements in a row.
  constexpr std::uint64_t kEvery = 4;
  const bool is_due = enqueued_strides_++ % kEvery < (learners_.size() == 1 ? 2U : 1U);
  if (!options_.measures_gradients || !is_due) return false;
  record_ready();
  const std::span<const engine::Event> read = synchronizer_.measure_gradients(ready_);
  if (!read.empty()) {
    for (std::size_t j = 0; j < learners_.size(); ++j) {
      learners_[j]->stream().wait(read[pool_of_[j]], "wait for the gradients to be measured");
    }
  }
  return synchronizer_.is_measured();
}

bool Scheduler::compare_copies() {
  if (options_.compare_rounds == 0 || rounds_ % static_cast<std::uint64_t>(options_.compare_rounds) != 0) return false;
  record_ready();
  return synchronizer_.compare_copies(ready_);
}

// GPUs may deadlock if some are in an exchange while others are in an all-reduce
// (engine/cuda/exchange/nccl_exchange.h).
void Scheduler::wait_for_all_reduce() {
  const std::span<const engine::Event> reduced = synchronizer_.reduced();
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    learners_[j]->stream().wait(reduced[pool_of_[j]], "wait for the all-reduce");
  }
}

bool Scheduler::gather_model() {
  if (synchronizer_.coupling() == sma::Coupling::kServer) {
    gather_server_weights();
    synchronizer_.spread_server_weights();
    return false;
  }
  if (synchronizer_.coupling() == sma::Coupling::kShared) {
    record_ready();
    synchronizer_.read_shared_after(ready_);
    return false;
  }
  if (!synchronizer_.must_gather(is_right_after_averaging())) return false;
  record_ready();
  const std::span<const engine::Event> read = synchronizer_.gather(ready_);
  for (std::size_t j = 0; j < learners_.size(); ++j) {
    learners_[j]->stream().wait(read[pool_of_[j]], "wait for the replicas to be read");
  }
  if (exchange() != nullptr) wait_for_all_reduce();
  return true;
}

}  // namespace arbalest::scheduler
