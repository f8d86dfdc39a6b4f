#include "checkpoint/run_state_text.h"

#include <algorithm>

#include <google/protobuf/text_format.h>

#include "arbalest/v1/run_state.pb.h"
#include "checkpoint/kernel_choices_text.h"
#include "checkpoint/saved_run.h"
#include "engine/base/error.h"
#include "scheduler/replicas/training_state.h"

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

// Returns a state without vectors, but with as many learners as the message has. `batches`: position in the data.
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

template <typename Field, typename Values>
void set_all(Field* field, const Values& values) {
  for (const auto& value : values) *field->Add() = value;
}

using StalenessField = google::protobuf::RepeatedPtrField<v1::RunState::Staleness>;

void set_staleness(StalenessField* field, const sma::StalenessCounts& counts) {
  for (const auto& [staleness, pushes] : counts) {
    v1::RunState::Staleness& added = *field->Add();
    added.set_staleness(staleness);
    added.set_pushes(pushes);
  }
}

sma::StalenessCounts staleness_of(const StalenessField& field) {
  sma::StalenessCounts counts;
  for (const v1::RunState::Staleness& each : field) counts[each.staleness()] = each.pushes();
  return counts;
}

v1::RunState::Epoch to_proto(const scheduler::Progress& sums, double seconds) {
  v1::RunState::Epoch message;
  message.set_tasks(sums.tasks);
  message.set_examples(sums.examples);
  set_all(message.mutable_sums(), sums.sums.values);
  message.set_replica_distance(sums.replica_distance);
  message.set_replica_spread(sums.replica_spread);
  message.set_host_seconds(sums.host_seconds);
  message.set_seconds(seconds);
  set_staleness(message.mutable_staleness(), sums.staleness);
  return message;
}

// A checkpoint of an older program has three sums by name.
dataflow::MetricSums sums_of(const v1::RunState::Epoch& message) {
  dataflow::MetricSums sums;
  if (message.sums().empty()) {
    sums.values[engine::kLossSum] = message.loss_sum();
    sums.values[engine::kLossSum + 1] = message.correct();
    sums.values[engine::kLossSum + 2] = message.correct_top5();
  }
  const int count = std::min(message.sums_size(), engine::kMaxSums);
  std::copy_n(message.sums().begin(), count, sums.values.begin());
  return sums;
}

scheduler::Progress from_proto(const v1::RunState::Epoch& message) {
  const scheduler::ProgressNumbers numbers{.tasks = message.tasks(),
                                           .examples = message.examples(),
                                           .sums = sums_of(message),
                                           .replica_distance = message.replica_distance(),
                                           .replica_spread = message.replica_spread(),
                                           .host_seconds = message.host_seconds()};
  return {numbers, staleness_of(message.staleness())};
}

v1::RunState::Scores scores_of(const RunState& run) {
  v1::RunState::Scores message;
  set_all(message.mutable_recent(), run.scores.recent);
  if (run.scores.best_test) message.set_best_test(*run.scores.best_test);
  if (run.scores.best_validation) message.set_best_validation(*run.scores.best_validation);
  if (run.scores.improved) message.set_improved(*run.scores.improved);
  message.set_epochs_since(run.scores.epochs_since);
  if (run.time_to_accuracy_seconds) message.set_time_to_accuracy_seconds(*run.time_to_accuracy_seconds);
  if (run.recent_seconds) message.set_recent_seconds(*run.recent_seconds);
  if (run.present_score) message.set_present(*run.present_score);
  if (run.best_model) {
    message.set_best_model(run.best_model->score);
    message.set_best_model_batches(run.best_model->batches);
    if (!run.best_model->sha256.empty()) message.set_best_model_sha256(run.best_model->sha256);
  }
  return message;
}

void read_scores(const v1::RunState::Scores& message, RunState& run) {
  run.scores.recent.assign(message.recent().begin(), message.recent().end());
  if (message.has_best_test()) run.scores.best_test = message.best_test();
  if (message.has_best_validation()) run.scores.best_validation = message.best_validation();
  if (message.has_improved()) run.scores.improved = message.improved();
  run.scores.epochs_since = message.epochs_since();
  if (message.has_time_to_accuracy_seconds()) run.time_to_accuracy_seconds = message.time_to_accuracy_seconds();
  if (message.has_recent_seconds()) run.recent_seconds = message.recent_seconds();
  if (message.has_present()) run.present_score = message.present();
  if (message.has_best_model() && message.has_best_model_batches()) {
    run.best_model = {message.best_model(), message.best_model_batches(), message.best_model_sha256()};
  }
}

v1::RunState::Plateau to_proto(const PlateauState& plateau) {
  v1::RunState::Plateau message;
  message.set_factor(plateau.factor);
  message.set_drops(plateau.drops);
  if (plateau.best) message.set_best(*plateau.best);
  message.set_bad_epochs(plateau.bad_epochs);
  message.set_cooldown(plateau.cooldown);
  return message;
}

// A checkpoint of an older program has no such state.
PlateauState read_plateau(const v1::RunState& run) {
  if (!run.has_plateau()) return {};
  const v1::RunState::Plateau& message = run.plateau();
  PlateauState plateau{.factor = message.factor(),
                       .drops = message.drops(),
                       .bad_epochs = message.bad_epochs(),
                       .cooldown = message.cooldown()};
  if (message.has_best()) plateau.best = message.best();
  return plateau;
}

dataflow::PixelRules read_pixels(const v1::RunState& run) {
  if (!run.has_pixels()) return dataflow::kUnrecordedRules;
  const v1::RunState::PixelRules& message = run.pixels();
  using Luma = dataflow::PixelRules::Luma;
  return {.luma = message.libpng_luma() ? Luma::kLibpng : Luma::kBt601,
          .is_oriented = !message.ignores_orientation(),
          .is_reduced = message.reduced()};
}

}  // namespace

std::string run_state_text(const SavedRun& saved) {
  const RunState& run = saved.run;
  v1::RunState message;
  message.set_batches(saved.training.batches);
  message.set_epochs(run.epochs);
  set_all(message.mutable_learners_per_device(), run.learners_per_device);
  if (run.team > 0) message.set_team(run.team);
  message.set_switches_done(run.switches_done);
  message.set_unused_switches(run.unused_switches);
  message.set_learner_steps_done(run.learner_steps_done);
  *message.mutable_training() = to_proto(saved.training);
  *message.mutable_epoch() = to_proto(run.epoch, run.epoch_seconds);
  message.set_examples(run.examples);
  set_staleness(message.mutable_staleness(), run.staleness);
  message.set_training_seconds(run.training_seconds);
  message.set_elapsed_seconds(run.elapsed_seconds);
  message.set_skipped_examples(run.skipped_examples);
  message.set_first_skipped(run.first_skipped);
  *message.mutable_scores() = scores_of(run);
  *message.mutable_plateau() = to_proto(run.plateau);
  message.mutable_rollbacks()->set_count(run.rollbacks.count);
  message.mutable_rollbacks()->set_factor(run.rollbacks.factor);
  if (run.rollbacks.to_batch) message.mutable_rollbacks()->set_to_batch(*run.rollbacks.to_batch);
  message.mutable_rollbacks()->set_point(run.rollbacks.point);
  if (run.untrained_loss) message.set_untrained_loss(*run.untrained_loss);
  if (run.epoch_loss) message.set_epoch_loss(*run.epoch_loss);
  for (const LearnerStep& step : run.learners) {
    v1::RunState::LearnerStep& added = *message.add_learners();
    added.set_at_batch(step.at_batch);
    set_all(added.mutable_per_device(), step.per_device);
  }
  message.set_metrics_bytes(run.metrics_bytes);
  for (const engine::KernelChoice& choice : run.kernels) *message.add_kernels() = to_proto(choice);
  v1::RunState::Origin& origin = *message.mutable_origin();
  v1::RunState::PixelRules& pixels = *message.mutable_pixels();
  pixels.set_libpng_luma(saved.pixels.luma == dataflow::PixelRules::Luma::kLibpng);
  pixels.set_ignores_orientation(!saved.pixels.is_oriented);
  pixels.set_reduced(saved.pixels.is_reduced);
  origin.set_program(saved.origin.program);
  origin.set_processor(saved.origin.processor);
  origin.set_dataset(saved.origin.dataset);
  set_all(origin.mutable_devices(), saved.origin.devices);
  std::string text;
  if (!google::protobuf::TextFormat::PrintToString(message, &text)) {
    engine::fail(engine::ErrorKind::kInternal, "internal error: the run's state cannot be printed");
  }
  return text;
}

namespace {

SavedRun saved_run_of(const v1::RunState& message) {
  SavedRun saved;
  saved.training = from_proto(message.training(), message.batches());
  RunState& run = saved.run;
  run.learners_per_device.assign(message.learners_per_device().begin(), message.learners_per_device().end());
  run.team = message.team();
  run.switches_done = message.switches_done();
  run.unused_switches = message.unused_switches();
  run.learner_steps_done = message.learner_steps_done();
  for (const v1::RunState::LearnerStep& step : message.learners()) {
    run.learners.push_back({step.at_batch(), {step.per_device().begin(), step.per_device().end()}, {}});
  }
  run.epochs = message.epochs();
  run.epoch = from_proto(message.epoch());
  run.epoch_seconds = message.epoch().seconds();
  run.examples = message.examples();
  run.staleness = staleness_of(message.staleness());
  run.training_seconds = message.training_seconds();
  run.elapsed_seconds = message.elapsed_seconds();
  run.skipped_examples = message.skipped_examples();
  run.first_skipped = message.first_skipped();
  read_scores(message.scores(), run);
  run.plateau = read_plateau(message);
  if (message.has_rollbacks()) run.rollbacks = {message.rollbacks().count(), message.rollbacks().factor()};
  if (message.rollbacks().has_to_batch()) run.rollbacks.to_batch = message.rollbacks().to_batch();
  run.rollbacks.point = message.rollbacks().has_point() ? message.rollbacks().point() : message.batches();
  if (message.has_untrained_loss()) run.untrained_loss = message.untrained_loss();
  if (message.has_epoch_loss()) run.epoch_loss = message.epoch_loss();
  run.metrics_bytes = message.metrics_bytes();
  for (const v1::KernelChoice& choice : message.kernels()) run.kernels.push_back(jobs::from_proto(choice));
  saved.pixels = read_pixels(message);
  saved.origin = {message.origin().program(),
                  message.origin().processor(),
                  message.origin().dataset(),
                  {message.origin().devices().begin(), message.origin().devices().end()}};
  return saved;
}

}  // namespace

SavedRun read_run_state(const Checkpoint& checkpoint, std::string_view name) {
  v1::RunState message;
  read_message(checkpoint, name, message);
  return saved_run_of(message);
}

SavedRun parse_run_state(const std::string& text) {
  v1::RunState message;
  if (!google::protobuf::TextFormat::ParseFromString(text, &message)) {
    engine::fail(engine::ErrorKind::kInternal, "internal error: the text of a run's state cannot be read");
  }
  return saved_run_of(message);
}

}  // namespace arbalest::jobs
