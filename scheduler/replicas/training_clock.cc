#include "scheduler/replicas/training_clock.h"

#include <utility>

namespace arbalest::scheduler {

TrainingClock::TrainingClock(LearningRateSchedule schedule, std::int64_t batches_per_epoch, std::uint64_t seed)
    : schedule_(std::move(schedule)), batches_per_epoch_(batches_per_epoch), seed_(seed) {}

float TrainingClock::learning_rate() const noexcept {
  return static_cast<float>(static_cast<double>(schedule_.at(epochs(), learners_)) * rate_factor_);
}

void TrainingClock::lower_rate(double factor, int drops) noexcept {
  rate_factor_ = factor;
  extra_drops_ = drops;
}

bool TrainingClock::take_drops() noexcept {
  const int drops = schedule_.drops_before(epochs()) + extra_drops_;
  return std::exchange(drops_, drops) != drops;
}

void TrainingClock::continue_from(std::uint64_t batches, int drops) noexcept {
  batches_ = batches;
  drops_ = drops;
}

}  // namespace arbalest::scheduler
