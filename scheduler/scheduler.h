// The Scheduler decides what runs when: mini-batches on learners in iterations, evaluation, changes of the learners and
// of the scheme. A Round (scheduler/rounds) couples the learners.
//
// A run may have several processes, each with a scheduler of its own. Learners are numbered over all of them, process
// by process, and each process gets the mini-batches of its learners. All processes must make the same calls; calls
// that wait also wait for the other processes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "engine/collective.h"
#include "engine/process/world.h"
#include "learners/learner_pool.h"
#include "scheduler/evaluation/evaluate.h"
#include "scheduler/evaluation/evaluation_weights.h"
#include "scheduler/replicas/diverged.h"
#include "scheduler/replicas/learning_rate.h"
#include "scheduler/replicas/loss_watch.h"
#include "scheduler/replicas/progress.h"
#include "scheduler/replicas/replicas.h"
#include "scheduler/replicas/results.h"
#include "scheduler/replicas/ring_queue.h"
#include "scheduler/replicas/ring_slots.h"
#include "scheduler/replicas/training_clock.h"
#include "scheduler/replicas/training_state.h"
#include "scheduler/rounds/round.h"
#include "sma/synchronizer.h"

namespace arbalest::scheduler {

struct Options {
  LearningRateSchedule learning_rate;
  // Schemes of synchronization: the first one, and those that switch_to() may switch to.
  sma::Options synchronization = {};
  std::vector<sma::Options> switches = {};
  std::uint64_t seed = 1;
  std::int64_t batches_per_epoch = 1;
  MovingAverageOptions moving_average = {};  // average that is evaluated and saved
  bool evaluates_replicas = false;           // whether evaluate_replicas() will be called
  bool may_resize = false;                   // whether the number of learners may change, up to most_learners
  int most_learners = 0;                     // over all devices of this process; 0: as many as the pools have
  bool measures_gradients = false;           // whether Progress gets samples of the gradients' variance
  std::optional<SpikeRule> spike = {};       // what counts as a spike of the training loss; none: nothing does
  // Rounds (averagings; steps under s_sgd) between two comparisons of what all devices must hold alike; 0: never.
  int compare_rounds = 0;
  // A finite ring of training mini-batches on which the model's running statistics are measured whenever it is
  // evaluated or saved. Null: the model keeps the mean of the replicas' statistics, or the loaded ones.
  dataflow::BatchRing* statistics_ring = nullptr;
};

class Scheduler {
 public:
  // Creates the learners and initializes z and every replica with the job's seed. Pools (one per device), rings,
  // collective (one rank per pool) and `world` must outlive the scheduler.
  Scheduler(const Options& options, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
            engine::Collective& collective, engine::process::World& world);
  // Host memory during initialization and snapshot(): the model in canonical order.
  static std::size_t host_bytes(const dataflow::ParameterLayout& parameters) {
    return static_cast<std::size_t>(parameters.unpadded_elements()) * sizeof(float);
  }
  // Waits for all enqueued work.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Learners of all processes.
  int learners() const noexcept { return replicas_.share().all; }
  // Mini-batches enqueued since the start of the run, and the same number in epochs.
  std::uint64_t batches() const noexcept { return clock_.batches(); }
  double progress() const noexcept { return clock_.epochs(); }
  // Learning rate of the next iteration.
  float learning_rate() const noexcept { return clock_.learning_rate(); }
  // From the next iteration on, the learning rate is `factor` times that of the schedule. `drops`: how often the factor
  // has fallen since the start of the run. If that number changes, averaging restarts as at the drops of the schedule.
  void lower_rate(double factor, int drops) { clock_.lower_rate(factor, drops); }

  // Enqueues `iterations` iterations from `ring` and returns the results that have ended meanwhile; streams are not
  // drained. Throws Diverged, naming learner and task, when a loss, gradient or weight is not finite, or at a spike of
  // the loss (Options::spike). The model is then the last finite one and can still be evaluated and saved, and the host
  // alone knows the error: streams carry none, so restore() may go back to an earlier state. Throws kDevice if the
  // devices' copies of the model differ (Options::compare_rounds). Passes on errors of streams and of the input.
  //
  // One of several processes may find a divergence that the others do not, and all must end at the same iteration.
  // There advance() and drain() keep it for take_divergence(), and further iterations may follow.
  Progress advance(dataflow::BatchRing& ring, int iterations);
  bool has_divergence() const { return results_.has_divergence(); }
  // Returns the first divergence since the last call, if there was one.
  std::optional<Diverged> take_divergence() { return results_.take_divergence(); }
  // Returns the advice of the present scheme to a run that has diverged (sma::divergence_remedy).
  std::string divergence_remedy() const { return results_.divergence_remedy(); }
  // Iterations by which this process may be ahead of the others. It need not wait for anything of theirs that is
  // younger.
  int iterations_apart() const { return round_->iterations_apart(); }
  // Waits for all enqueued work and returns its results.
  Progress drain();

  // Returns the sums of the metrics of the model, or of its moving average, over all batches of `ring`, which are
  // spread over all learners of all processes. Leaves the ring at its start. If replicas are pulled to the central
  // model z, or share it, the model is z. Otherwise it is the mean of the replicas, in a separate vector; right after
  // an averaging that assigns z, this mean equals z. Call only when drained. Throws kData if no example can be read.
  Evaluation evaluate(dataflow::BatchRing& ring);

  // Evaluates each learner's own weights and returns the mean over learners of the mean loss over the labeled examples
  // of `ring`. Leaves the ring at its start. Call only when drained, and only if Options::evaluates_replicas.
  double evaluate_replicas(dataflow::BatchRing& ring);

  // Returns the mean loss of the present weights over the first `rounds` mini-batches of each learner, computed as in
  // training but without a step; none if it is not finite, or if no example can be read. Leaves the ring at its start.
  // Training goes on as without the call. Call only before the first iteration.
  std::optional<double> training_loss(dataflow::BatchRing& ring, int rounds);

  // From the next iteration on, `learners[d]` learners train on device d; they must be prepared (LearnerPool::prepare).
  // All of them, new or not, continue from the model, with zero optimizer state and without the central model's
  // momentum. The sequence of mini-batches continues; pull and learning rate follow from the new number. Call only when
  // drained, and only if Options::may_resize. The ring must have enough slots (needed_ring_slots).
  void resize(std::span<const int> learners);
  // From the next iteration on, the same learners train in other teams (LearnerPool::set_team), which must be prepared.
  // Their weights and optimizer state are copied on the devices, and all else stays, so later iterations are the same
  // as without the call. Call only when drained. Not under schemes with a server or shared weights.
  void change_teams();
  // Switches to `synchronization`, one of Options::switches, from the next iteration on. `scaling`: how the learning
  // rate then scales with the number of learners. The model becomes the central model and the weights of every learner.
  // The optimizers' state is kept if the scheme says so (sma::Options::keeps_state_at_switch) and the number of
  // learners does not change; else it is zeroed. Call only when drained. `learners`: as for resize().
  void switch_to(const sma::Options& synchronization, RateScaling scaling, std::span<const int> learners);

  // Returns the model, or its moving average, in canonical order; by default with the statistics that evaluate() uses.
  // Waits for all enqueued work and drops its Progress.
  std::vector<dataflow::NamedTensor> snapshot(Statistics statistics = Statistics::kReestimated);
  // Sets the central model and every replica to `tensors`. Call only before the first iteration.
  void load(std::span<const dataflow::NamedTensor> tensors);

  // Compares at once what all devices must hold alike, if Options::compare_rounds asks for comparisons. Throws kDevice
  // as advance() does. Call only when drained.
  void verify_copies();

  // Copies the state of the training to the host, after verify_copies(). Each process gets the vectors of its own
  // learners, and rank 0 all other vectors, too. Later iterations are the same as without the call. Call only when
  // drained. `memory`: an earlier state of this scheduler that the new one takes the place of.
  TrainingState save(TrainingState memory = {});
  // Upper bound of a saved state's size, in copies of the model (host_bytes). `is_whole`: not only the learners.
  static std::int64_t state_vectors(int learners, std::size_t state_slots, bool is_whole = true) {
    constexpr std::int64_t kOtherVectors = 6;  // the model twice: as it is evaluated, and as learners go on from it
    return (is_whole ? kOtherVectors : 0) + learners * static_cast<std::int64_t>(1 + state_slots);
  }
  // Goes on from a saved state with `synchronization`, its `scaling` of the learning rate, and `learners[d]` prepared
  // learners on device d. With as many learners in all as the state has, later iterations are the same as those of the
  // scheduler that saved it. With another number they are those after a resize() at that point. Enqueued work is
  // abandoned, and its results are lost. lower_rate() must follow if the state had another factor. Restart the training
  // ring at the mini-batch state.batches afterwards. Throws kCheckpoint if the state is of another model or optimizer,
  // and as verify_copies() does. Of the learners' vectors, a process needs only those of its own learners.
  void restore(const TrainingState& state, const sma::Options& synchronization, RateScaling scaling,
               std::span<const int> learners);

 private:
  // One iteration that is under way.
  struct Iteration {
    std::size_t tasks = 0;
    std::optional<sma::AveragingTicket> averaging = {};
    bool measures = false;      // whether the gradients' variance is measured
    bool compares = false;      // whether the devices' copies are compared
    std::uint64_t round = 0;    // rounds up to its end
    std::uint64_t batches = 0;  // mini-batches up to its end
  };

  void enqueue_iteration(dataflow::BatchRing& ring, Progress& progress);
  // Whether the devices' copies are compared after this round.
  bool is_comparison_due() const;
  // Waits for the oldest iteration, and takes its results.
  void take_iteration(Progress& progress);
  // Couples the replicas that there are now by this scheme. They must get their weights afterwards.
  void couple(const sma::Options& synchronization);
  void regroup(const sma::Options& synchronization, std::span<const int> learners, bool keeps_state);
  // Waits for all enqueued work; there may be no tasks.
  void settle();
  // Waits for all streams and forgets all enqueued work.
  void abandon() noexcept;

  const Options options_;
  TrainingClock clock_;
  Replicas replicas_;
  sma::Synchronizer synchronizer_;
  Results results_;
  EvaluationWeights evaluation_;
  std::unique_ptr<Round> round_;
  RingQueue<Iteration> iterations_;  // under way, oldest first
  std::uint64_t rounds_ = 0;         // averagings since the start of the run, steps under s_sgd, and pushes
};

}  // namespace arbalest::scheduler
