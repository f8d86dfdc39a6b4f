#include "jobs/checkpoint/run_end.h"

#include <fmt/format.h>

#include "jobs/messages/text.h"

namespace arbalest::jobs {

bool minutes_are_over(const TrainingOptions& training, double training_seconds) {
  constexpr double kSecondsPerMinute = 60.0;
  return training.max_minutes && training_seconds >= *training.max_minutes * kSecondsPerMinute;
}

std::string patience_text(const TrainingOptions& training) {
  return fmt::format("{} without an improvement (training.patience_epochs)",
                     counted(training.patience_epochs.value(), "epoch"));
}

std::string early_end_text(const TrainingOptions& training, const RunState& state) {
  if (training.patience_epochs && state.scores.epochs_since >= *training.patience_epochs) {
    return patience_text(training);
  }
  if (!minutes_are_over(training, state.training_seconds + state.epoch_seconds)) return "";
  return fmt::format("it has trained for {:g} minutes (training.max_minutes)", *training.max_minutes);
}

}  // namespace arbalest::jobs
