#include "scheduler/rounds/server_round.h"

#include <utility>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace arbalest::scheduler {

using learners::Learner;
using learners::Ticket;

ServerRound::ServerRound(const sma::Options& options, const RoundContext& context)
    : PushedRound(options, context), pushes_(replicas().size()) {
  for (Pushes& each : pushes_) each.tasks = RingQueue<Ticket>(static_cast<std::size_t>(options.period));
  dispatcher_.restart(pushes_.size(), options.staleness);
}

IterationEnd ServerRound::enqueue(dataflow::BatchRing& ring, Progress& progress) {
  ring_ = &ring;
  for (std::size_t started = 0; started < pushes_.size(); ++started) {
    // A learner that stands still holds its mini-batches, and the ring hands out no more than it has slots.
    while (!ring.can_hand_out(options().period)) take(progress);
    std::optional<std::size_t> number = dispatcher_.start();
    for (; !number; number = dispatcher_.start()) take(progress);
    start(*number);
  }
  return {.rounds = std::exchange(taken_, 0)};
}

void ServerRound::start(std::size_t number) {
  learners::Team& team = replicas().team_of(number);
  Pushes& push = pushes_[number];
  const int mini_batches = options().period;
  server().wait_for_reader(team.pull(central().present(0), server().pushed()));
  const engine::StepParameters step = clock().step();
  push.learning_rate = step.learning_rate;
  for (int i = 1; i <= mini_batches; ++i) {
    const auto batch = ring_->next();
    ARBALEST_CHECK(batch.has_value());  // training batches never end
    Ticket& task = replicas().last_task(number);
    team.gradient({&*batch, 1}, step, {&task, 1});
    if (i < mini_batches) {
      team.update({&task, 1}, {});
    } else {
      team.push(task);
    }
    push.tasks.push(task);
  }
  clock().count(static_cast<std::uint64_t>(mini_batches));
  team.stream().report(completions_, number);
}

void ServerRound::take(Progress& progress) {
  const std::size_t number = completions_.take();
  Pushes& push = pushes_[number];
  check_applied(number);  // the learner has pulled since its last push, so that push has ended
  while (!push.tasks.empty()) results().take({push.tasks.pop(), number, ring_}, progress);
  const std::int64_t staleness = dispatcher_.complete(number);
  ++progress.staleness[staleness];
  const learners::Team& team = replicas().team_of(number);
  const Ticket& last = replicas().last_task(number);
  server().push({.learner = number,
                 .ready = last.done,
                 .gradient = team.pushed(options().period),
                 .statistics = replicas()[number].gradient(),
                 .gradient_scale = team.gradient_scale(options().period),
                 .is_elsewhere = replicas().pool_of(number) > 0,
                 .learning_rate = sma::rate_of_push(options(), push.learning_rate, staleness)});
  push.unchecked = last.task;
  ++taken_;
}

std::uint64_t ServerRound::drain(Progress& progress) {
  while (!dispatcher_.all_are_idle()) take(progress);
  replicas().wait(server().pushed());
  for (std::size_t j = 0; j < pushes_.size(); ++j) check_applied(j);
  return std::exchange(taken_, 0);
}

void ServerRound::check_applied(std::size_t number) {
  const std::optional<std::uint64_t> task = std::exchange(pushes_[number].unchecked, std::nullopt);
  if (!task) return;
  const std::int32_t refused = server().refused(number);
  if (refused == 0) return;
  const engine::Device& device = replicas().pool(replicas().pool_of(number)).device();
  results().report_refused(fmt::format("learner {} on {}", number, device.name()), *task, refused);
}

void ServerRound::forget() noexcept {
  for (Pushes& each : pushes_) {
    while (!each.tasks.empty()) ring_->release(each.tasks.pop().task);
    each.unchecked.reset();
  }
  completions_.forget();
  dispatcher_.restart(pushes_.size(), options().staleness);
}

std::optional<sma::AveragingTicket> ServerRound::gather() {
  for (std::size_t p = 1; p < central().devices(); ++p) {
    engine::Stream& stream = central().stream(p);
    stream.wait(server().pushed(), "wait for the server's weights");
    stream.copy(central().present(p), central().present(0), central().vector_bytes(), "copy of the server's weights");
    server().wait_for_reader(stream.record());
  }
  return std::nullopt;
}

void ServerRound::hand_out_state() {
  for (Learner* learner : replicas().all()) {
    learner->assign(central().present(0), server().pushed(), learners::OptimizerState::kKeep);
    for (std::size_t slot = 0; slot < server().state_slots(); ++slot) {
      learner->assign_state(slot, server().state(slot), server().pushed());
    }
    learner->continue_from(server().steps());
  }
  replicas().settle();
}

}  // namespace arbalest::scheduler
