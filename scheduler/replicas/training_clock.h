// The position of a training run, in mini-batches, and the learning rate that follows from it.
#pragma once

#include <cstdint>

#include "engine/passes/step_parameters.h"
#include "scheduler/replicas/learning_rate.h"

namespace arbalest::scheduler {

class TrainingClock {
 public:
  // `seed`: the job's, which every step gets.
  TrainingClock(LearningRateSchedule schedule, std::int64_t batches_per_epoch, std::uint64_t seed);

  // Mini-batches enqueued since the start of the run, and numbers of mini-batches in epochs.
  std::uint64_t batches() const noexcept { return batches_; }
  double epochs() const noexcept { return epochs_of(batches_); }
  double epochs_of(std::uint64_t batches) const noexcept {
    return static_cast<double>(batches) / static_cast<double>(batches_per_epoch_);
  }
  std::int64_t batches_per_epoch() const noexcept { return batches_per_epoch_; }
  std::uint64_t seed() const noexcept { return seed_; }

  // Learning rate, and parameters, of the step that is enqueued next.
  float learning_rate() const noexcept;
  engine::StepParameters step() const noexcept { return {.seed = seed_, .learning_rate = learning_rate()}; }

  // `batches` more were enqueued.
  void count(std::uint64_t batches) noexcept { batches_ += batches; }
  // `learners`: of all processes.
  void set_learners(int learners) noexcept { learners_ = learners; }
  void set_scaling(RateScaling scaling) noexcept { schedule_.with_learners = scaling; }
  // The learning rate is `factor` times that of the schedule. `drops`: how often the factor has fallen so far.
  void lower_rate(double factor, int drops) noexcept;

  // Drops of the learning rate that have taken effect. take_drops() returns whether there was one since its last call.
  int drops() const noexcept { return drops_; }
  bool take_drops() noexcept;

  void continue_from(std::uint64_t batches, int drops) noexcept;

 private:
  LearningRateSchedule schedule_;
  std::int64_t batches_per_epoch_;
  std::uint64_t seed_;
  int learners_ = 1;
  std::uint64_t batches_ = 0;
  double rate_factor_ = 1.0;
  int extra_drops_ = 0;  // drops of rate_factor_
  int drops_ = 0;
};

}  // namespace arbalest::scheduler
