// What runs when: mini-batches to learners in rounds, averaging beside them, evaluation, restarts. The only place where
// a host thread waits for a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dataflow/input/batch_ring.h"
#include "engine/collective.h"
#include "learners/learner_pool.h"
#include "scheduler/central_statistics.h"
#include "scheduler/learning_rate.h"
#include "scheduler/moving_average.h"
#include "scheduler/ring_queue.h"
#include "sma/synchronizer.h"

namespace arbalest::scheduler {

struct Options {
  LearningRateSchedule learning_rate;
  // How learners are kept together: from the start, and what regroup() may switch to.
  sma::Options synchronization = {};
  std::vector<sma::Options> switches = {};
  std::uint64_t seed = 1;
  std::int64_t batches_per_epoch = 1;
  MovingAverageOptions moving_average = {};  // what is evaluated and saved
  bool evaluates_replicas = false;           // evaluate_replicas() will be called
  bool may_resize = false;                   // regroup() may change the number of learners, up to most_learners
  int most_learners = 0;                     // over all devices; 0: as many as the pools have
  bool measures_gradients = false;           // Progress has samples of the gradients' spread
  // Training mini-batches, finitely many, on which the model's running statistics are measured whenever it is evaluated
  // or saved; null: it keeps the mean of the replicas', or those that were loaded.
  dataflow::BatchRing* statistics_ring = nullptr;
};

// A *stride* is what is enqueued at once, and ends where a run may stop, be evaluated or be regrouped: a whole round of
// several steps where replicas are pulled, so that its learning rate is one; otherwise one step of every learner.

// Strides that may be enqueued before the oldest has ended; enough to keep every stream busy.
inline constexpr int kRunAhead = 2;

// Tasks of a learner that may be under way at a time, in strides of so many steps (sma::longest_stride): what
// PoolOptions::result_slots must be.
constexpr int result_slots(int steps) { return (kRunAhead + 1) * steps; }
// Slots of a batch ring: all tasks under way, and a stride being filled.
constexpr int needed_ring_slots(int learners, int steps) { return (kRunAhead + 2) * learners * steps; }
// For small batches more, so that not every one wakes the pool (measured: 4 slots of MNIST cost 6.5 % of a core, 16
// cost 2 to 3.5 %).
constexpr int slots_of_small_ring(std::int64_t batch_bytes) {
  constexpr std::int64_t kSmallRing = std::int64_t{16} << 20U;  // bytes that are spent without a need
  return static_cast<int>(std::clamp<std::int64_t>(kSmallRing / batch_bytes, 1, 16));
}
constexpr int ring_slots(int learners, int steps, std::int64_t batch_bytes) {
  return std::max(needed_ring_slots(learners, steps), slots_of_small_ring(batch_bytes));
}
// Of a ring of indices, which are so few bytes that the pool need only be woken every few hundred batches. Not more
// than an epoch has: a BatchOrder keeps two of them in mind.
constexpr int slots_of_index_ring(std::int64_t batches_per_epoch) {
  return static_cast<int>(std::min<std::int64_t>(batches_per_epoch, 1024));
}
constexpr int index_ring_slots(int learners, int steps, std::int64_t batches_per_epoch) {
  return std::max(needed_ring_slots(learners, steps), slots_of_index_ring(batches_per_epoch));
}
// Of a ring that is not trained on, but passed from its first batch to its last, time and again: what is under way on
// the learners and one each being filled, where the pass has so many batches. `wanted`: by slots_of_small_ring or
// slots_of_index_ring.
constexpr int pass_ring_slots(int learners, std::int64_t batches, int wanted) {
  const std::int64_t most = std::max<std::int64_t>(batches, 1);
  return static_cast<int>(std::min<std::int64_t>(std::max((kRunAhead + 1) * learners, wanted), most));
}

// What ended between two calls, in task order.
struct Progress {
  std::int64_t tasks = 0;
  std::int64_t examples = 0;
  double loss_sum = 0.0;
  double correct = 0.0;
  double correct_top5 = 0.0;
  // sqrt(mean over learners of |w_j - z|^2), running statistics left out, at the last averaging that ended; 0 if none
  double replica_distance = 0.0;
  // sqrt(mean over learners of |w_j - mean of w|^2), alike
  double replica_spread = 0.0;
  double host_seconds = 0.0;  // CPU time of the calling thread to enqueue rounds, sleep not counted
  // Gradients g_j of the learners' mini-batches in rounds that measured them: sums over these rounds, and how many
  // there were. Of one learner: of two successive gradients, in place of two learners'.
  double gradient_square_mean = 0.0;  // mean_j |g_j|^2
  double mean_gradient_square = 0.0;  // |mean_j g_j|^2
  std::int64_t gradient_samples = 0;

  void add(const Progress& later);
};

// Running statistics of the central model.
enum class Statistics {
  kReestimated,  // on Options::statistics_ring, if there is one, which takes as long as an evaluation of its
                 // mini-batches
  // The mean of the replicas'. In a moving average there is what has been re-estimated before, too.
  kAveraged
};

struct Evaluation {
  double loss = 0.0;  // mean over the examples
  double accuracy = 0.0;
  double top5_accuracy = 0.0;  // share of examples whose label is among the five largest logits
  std::int64_t examples = 0;
  // As in Progress, of the replicas at this point; 0 where the model is not their mean, or z right after an averaging.
  double replica_distance = 0.0;
  double replica_spread = 0.0;
};

class Scheduler {
 public:
  // Creates the learners, initializes z and every replica with the job's seed, and leaves everything ready to run.
  // Pools (one per device), rings and collective (one rank per pool) must outlive it.
  Scheduler(const Options& options, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
            engine::Collective& collective);
  // What it takes of host memory while it initializes, and snapshot() later: the model in canonical order.
  static std::size_t host_bytes(const dataflow::ParameterLayout& parameters) {
    return static_cast<std::size_t>(parameters.numbers()) * sizeof(float);
  }
  // Waits for all that is enqueued.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  int learners() const noexcept { return static_cast<int>(learners_.size()); }
  // Mini-batches enqueued since the start of the run, and the same in epochs.
  std::uint64_t batches() const noexcept { return batches_; }
  double progress() const noexcept;
  // The learning rate of the next stride.
  float learning_rate() const noexcept;

  // Enqueues `strides` strides from `ring` and returns what has ended meanwhile; streams are not drained. Throws
  // kDiverged, naming learner and task, when a loss, gradient or weight is not finite: the model is then the last
  // finite one and can still be evaluated and saved. Throws what a stream or the input threw.
  Progress advance(dataflow::BatchRing& ring, int strides);
  // Waits for all that is enqueued.
  Progress drain();

  // Loss and accuracy of the model, or of its moving average, over all batches of `ring`, spread over all learners;
  // leaves the ring at its start. The model is the center where replicas are pulled to one, and the mean of the
  // replicas otherwise, in a vector of its own that is never fed back. Only when drained. Throws kData if none of the
  // examples can be read.
  Evaluation evaluate(dataflow::BatchRing& ring);

  // The mean over learners of the loss that each one's own weights have, mean over the labeled examples of `ring`,
  // which it leaves at its start. Only when drained, and if Options::evaluates_replicas.
  double evaluate_replicas(dataflow::BatchRing& ring);

  // From the next stride on `learners[d]` learners train on device d: prepared ones (LearnerPool::prepare). All of
  // them, new or not, go on from the model, with their optimizers' state and the center's momentum started anew; the
  // sequence of mini-batches goes on, and pull and learning rate follow from the new number. Only when drained, and if
  // Options::may_resize; the ring must have the slots for so many (needed_ring_slots).
  void resize(std::span<const int> learners);
  // From the next stride on learners are kept together by `synchronization`, one of Options::switches, and their number
  // scales the learning rate by `scaling`. The model becomes the center and the weights of every learner. Their
  // optimizers' state is kept where the scheme says so (sma::Options::keeps_state_at_switch). Only when drained.
  // Learners as for resize(); if their number changes, their optimizers' state starts anew, too.
  void switch_to(const sma::Options& synchronization, LearnerScaling scaling, std::span<const int> learners);

  // The model, or its moving average, in canonical order, unless told otherwise as evaluate() sees it. Waits for all
  // that is enqueued and drops its Progress.
  std::vector<dataflow::NamedTensor> snapshot(Statistics statistics = Statistics::kReestimated);
  // Center and every replica := `tensors`. Before the first stride.
  void load(std::span<const dataflow::NamedTensor> tensors);

 private:
  struct Task {
    learners::Ticket ticket;
    std::size_t learner = 0;              // number over all devices
    dataflow::BatchRing* ring = nullptr;  // where its batch came from
  };

  // One stride that is under way.
  struct Stride {
    std::size_t tasks = 0;
    bool averages = false;
    bool measures = false;  // the gradients' spread
  };

  void create_learners();
  // Takes over the pools' present learners.
  void collect_learners();
  // Tells synchronizer and learners of each other.
  void bind(const sma::Options& synchronization);

  // rounds.cc: what is enqueued.
  void enqueue_stride(dataflow::BatchRing& ring);
  void enqueue_pulled_round(dataflow::BatchRing& ring);
  void enqueue_assigned_step(dataflow::BatchRing& ring);
  void enqueue_reduced_step(dataflow::BatchRing& ring);
  // So many steps of every learner, which wait for nobody.
  void enqueue_steps(dataflow::BatchRing& ring, int steps, const engine::StepParameters& each);
  void enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step);
  // Each update waits for after[device]; there may be none.
  void enqueue_updates(dataflow::BatchRing& ring, std::span<const engine::Event> after);
  engine::StepParameters step_parameters() const;
  // ready_[d][j] := the point after all work of each learner so far.
  void record_ready();
  void restart_at_drops();
  // Weights := center on every learner, once `ready` has passed, by device.
  void assign_center(std::span<const engine::Event> ready, learners::OptimizerState state);
  // Brings the model up to date if it is the replicas' mean; learners wait for that before their next update.
  // False if there is nothing to do.
  bool gather_model();
  // Measures the gradients' spread where it is due; true if there will be a sample.
  bool measure_gradients();
  bool is_right_after_averaging() const noexcept { return steps_left_ == 0; }

  void regroup(const sma::Options& synchronization, std::span<const int> learners, bool keeps_state);
  // Takes the present model into every pool's evaluation weights, which nobody may be reading, and, if it
  // `rounds_them`, brings their copies in low precision up to date.
  void move_averages(bool rounds_them);
  void pop_stride(Progress& progress);
  void pop_averaging(Progress& progress);
  void pop_task(Progress& progress);
  void check_finite(const Task& task) const;
  // Brings every pool's evaluation weights up to date, and sees to their running statistics. Only when drained.
  void refresh_evaluation_weights(Statistics statistics);
  void forget_statistics();
  void measure_statistics();
  // Blocks the host until `event` has passed, and throws the first error of the work before it.
  void wait(const engine::Event& event);
  // Waits for all streams and forgets what is enqueued.
  void abandon() noexcept;

  Options options_;
  std::span<const std::unique_ptr<learners::LearnerPool>> pools_;
  std::vector<learners::Learner*> learners_;  // of all pools, by number
  std::vector<std::size_t> pool_of_;          // by learner
  sma::Synchronizer synchronizer_;

  MovingAverage moving_average_;
  std::uint64_t batches_ = 0;
  int drops_ = 0;       // of the learning rate, that have taken effect
  int steps_left_ = 0;  // of the present round, where the center is assigned
  std::uint64_t enqueued_strides_ = 0;
  std::optional<sma::AveragingTicket> gathered_;   // for the present evaluation weights
  RingQueue<Task> tasks_;                          // enqueued training tasks, oldest first
  RingQueue<Stride> strides_;                      // that they belong to
  RingQueue<sma::AveragingTicket> averagings_;     // of the strides that average
  std::vector<std::vector<engine::Event>> ready_;  // by pool and learner: the weights may be read
  std::vector<std::vector<engine::Event>> parts_;  // by learner: the parts of its gradient are there
  std::vector<learners::Ticket> last_tasks_;       // of the step being enqueued, by learner
  std::vector<engine::Event> evaluation_ready_;    // by pool: the evaluation weights are there
  std::optional<CentralStatistics> statistics_;
};

}  // namespace arbalest::scheduler
