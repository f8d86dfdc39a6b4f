// A Round couples the replicas of a run: its subclasses are the ways to do so, and no other class knows which one a run
// has. A Round enqueues the learners' work in iterations, completes the model where it is to be read, and saves and
// restores what its later iterations depend on.
//
// A round is made anew whenever the scheme or the learners change (make_round.h), at a point without work under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "dataflow/input/batches/batch_ring.h"
#include "learners/learner.h"
#include "scheduler/replicas/progress.h"
#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/results.h"
#include "scheduler/replicas/ring_slots.h"
#include "scheduler/replicas/training_clock.h"
#include "scheduler/replicas/training_state.h"
#include "sma/options.h"
#include "sma/synchronizer.h"

namespace arbalest::scheduler {

// A Round works with these, which must outlive it.
struct RoundContext {
  Replicas& replicas;
  sma::Synchronizer& synchronizer;
  TrainingClock& clock;
  Results& results;
};

// Tells what one iteration has enqueued besides its tasks.
struct IterationEnd {
  std::uint64_t rounds = 0;                            // that end with it
  std::optional<sma::AveragingTicket> averaging = {};  // whose result is to be taken
};

class Round {
 public:
  virtual ~Round() = default;
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  const sma::Options& options() const noexcept { return options_; }

  // Returns the vectors that the updates of a pool's learners read.
  virtual learners::UpdateSources sources(std::size_t /*pool*/) { return {}; }

  // Enqueues one iteration: sma::Options::steps_per_iteration steps of every learner, or as many pushes as there are
  // learners. Counts the mini-batches. `progress` gets results that end meanwhile, if the round takes them itself.
  virtual IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) = 0;
  // Iterations by which this process may be ahead of the others.
  virtual int iterations_apart() const { return kRunAhead; }
  // Whether a round has ended, so that the central model z is the model.
  virtual bool is_between_rounds() const { return true; }
  // The learning rate has dropped: averaging may begin anew.
  virtual void restart_at_drop() {}
  // Completes what iterations have left under way, and takes its results. Returns the rounds that end with it.
  virtual std::uint64_t drain(Progress& /*progress*/) { return 0; }
  // Gives up what is under way. interrupt() comes before the streams are drained, and forget() after it.
  virtual void interrupt() noexcept {}
  virtual void forget() noexcept {}

  // The model of a run can be read, on model_stream(pool), once this was called at a point where nothing was enqueued
  // since. Learners wait before they change what is read. Returns the averaging that tells how far the replicas are
  // from the model, if the model is their mean. make_readable() must come before it while iterations are under way.
  virtual void make_readable(Progress& /*progress*/) {}
  virtual std::optional<sma::AveragingTicket> gather() { return std::nullopt; }
  // The model, [elements] on the device.
  virtual const float* model(std::size_t pool) const { return central().present(pool); }
  // Averages the model into `average` (engine/passes/moving_average.h; a weight of 1 makes it a copy) and, unless null,
  // rounds the result to `rounded`; both are [elements + frozen] on the device. Frozen elements are copied. Returns the
  // event after which they are complete.
  engine::Event read_model(std::size_t pool, float* average, float weight, engine::BFloat16* rounded);
  // Later strides wait until the model has been read: read[pool].
  virtual void resume_after(std::span<const engine::Event> /*read*/) {}
  // Sets z to the model, after gather(), and the central model's momentum to zero. Returns by pool the event after
  // which z may be copied.
  std::span<const engine::Event> restart_central();

  // Enqueues a comparison of what all devices hold alike, at the end of an iteration. Returns whether there is one to
  // take (sma::Synchronizer::take_comparison).
  virtual bool compare_copies() { return false; }
  // Enqueues a measurement of the gradients' variance, if one is due. Call it after every iteration. Returns whether
  // there is one to take (sma::Synchronizer::take_variance).
  bool measure_gradients();

  // Whether all replicas have equal weights and optimizer state, so that a server may take over those of any.
  virtual bool has_equal_replicas() const { return false; }
  // Gives all learners the weights and the optimizer state that a server has, and takes over those that all learners
  // have. No work may be under way.
  virtual void hand_out_state() {}
  virtual void take_over_state() {}
  // Sets the parts of `state` that only this mode has: position within the round, vectors of the central model.
  // After gather(), without work under way.
  virtual void save(TrainingState& state) const;
  virtual void restore(const TrainingState& state) { restore_position(state); }
  // The part of these that is no vector.
  virtual void save_position(TrainingState& state) const;
  virtual void restore_position(const TrainingState& /*state*/) {}

 protected:
  Round(const sma::Options& options, const RoundContext& context) : options_(options), context_(context) {}

  Replicas& replicas() const { return context_.replicas; }
  sma::Synchronizer& synchronizer() const { return context_.synchronizer; }
  sma::CentralModel& central() const { return context_.synchronizer.central(); }
  TrainingClock& clock() const { return context_.clock; }
  Results& results() const { return context_.results; }
  // Learners of all processes.
  int learners() const { return context_.replicas.share().all; }

  // Enqueues a gradient of every learner, and counts it.
  void enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step, bool has_parts = false);
  // Enqueues `steps` steps of every learner, which wait for no other learner.
  void enqueue_steps(dataflow::BatchRing& ring, int steps, const engine::StepParameters& each);

  virtual engine::Stream& model_stream(std::size_t pool) const { return central().stream(pool); }
  // The vector that read_model() takes the frozen elements of: nothing writes them there.
  virtual const float* frozen_source(std::size_t pool) const { return central().present(pool); }
  virtual bool measure(sma::GradientVariance& variance);

 private:
  const sma::Options options_;
  const RoundContext context_;
  std::uint64_t iterations_ = 0;
};

}  // namespace arbalest::scheduler
