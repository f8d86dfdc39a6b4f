#include "jobs/checkpoint/text/training_state_text.h"

namespace arbalest::jobs {

namespace {

v1::RunState::Training::Losses to_proto(const scheduler::LossHistory& losses) {
  v1::RunState::Training::Losses message;
  message.set_batches(losses.batches);
  message.set_examples(losses.examples);
  message.set_loss_sum(losses.loss_sum);
  if (losses.first) message.set_first(*losses.first);
  for (const double mean : losses.recent) message.add_recent(mean);
  message.set_high_windows(losses.high_windows);
  return message;
}

scheduler::LossHistory from_proto(const v1::RunState::Training::Losses& message) {
  scheduler::LossHistory losses{.batches = message.batches(),
                                .examples = message.examples(),
                                .loss_sum = message.loss_sum(),
                                .high_windows = message.high_windows()};
  if (message.has_first()) losses.first = message.first();
  losses.recent.assign(message.recent().begin(), message.recent().end());
  return losses;
}

}  // namespace

v1::RunState::Training to_proto(const scheduler::TrainingState& training) {
  v1::RunState::Training message;
  message.set_drops(training.drops);
  message.set_steps_left(training.steps_left);
  message.set_averaged_at(training.averaged_at);
  message.set_last_learning_rate(training.last_learning_rate);
  message.set_rounds(training.rounds);
  for (const scheduler::LearnerState& learner : training.learners) message.add_learner_steps(learner.steps);
  for (const std::string& slot : training.optimizer_slots) message.add_optimizer_slots(slot);
  *message.mutable_losses() = to_proto(training.losses);
  return message;
}

scheduler::TrainingState from_proto(const v1::RunState::Training& message, std::uint64_t batches) {
  scheduler::TrainingState training{.batches = batches,
                                    .drops = message.drops(),
                                    .steps_left = message.steps_left(),
                                    .averaged_at = message.averaged_at(),
                                    .last_learning_rate = message.last_learning_rate(),
                                    .rounds = message.rounds(),
                                    .losses = from_proto(message.losses())};
  training.optimizer_slots.assign(message.optimizer_slots().begin(), message.optimizer_slots().end());
  for (const std::uint64_t steps : message.learner_steps()) training.learners.push_back({.steps = steps});
  return training;
}

}  // namespace arbalest::jobs
