#include "checkpoint/run_end.h"

#include <fmt/format.h>

#include "messages/text.h"

namespace arbalest::jobs {

bool minutes_are_over(const TrainingOptions& training, double training_seconds) {
  constexpr double kSecondsPerMinute = 60.0;
  return training.max_minutes && training_seconds >= *training.max_minutes * kSecondsPerMinute;
}

std::string patience_text(const TrainingOptions& training) {
  return fmt::format("{} without an improvement (training.patience_epochs)",
                     counted(training.patience_epochs.value(), "epoch"));
}

ReachedLimits reached_limits(const TrainingOptions& training, const RunState& state) {
  return {.epochs = state.epochs,
          .patience = training.patience_epochs && state.scores.epochs_since >= *training.patience_epochs,
          .minutes = minutes_are_over(training, state.training_seconds + state.epoch_seconds)};
}

std::vector<std::string> settings_to_go_on(const TrainingOptions& training, const ReachedLimits& reached) {
  std::vector<std::string> settings;
  if (reached.target) settings.emplace_back("training.target_accuracy=default");
  if (reached.patience) settings.emplace_back("training.patience_epochs=default");
  if (reached.patience && training.min_improvement > 0.0) settings.emplace_back("training.min_improvement=default");
  if (reached.minutes) settings.emplace_back("training.max_minutes=default");
  if (reached.epochs >= training.max_epochs) {
    constexpr int kMoreEpochs = 10;
    settings.push_back(fmt::format("training.max_epochs={}", reached.epochs + kMoreEpochs));
  }
  return settings;
}

std::string early_end_text(const TrainingOptions& training, const RunState& state) {
  const ReachedLimits reached = reached_limits(training, state);
  if (reached.patience) return patience_text(training);
  if (!reached.minutes) return "";
  return fmt::format("it has trained for {:g} minutes (training.max_minutes)", *training.max_minutes);
}

}  // namespace arbalest::jobs
