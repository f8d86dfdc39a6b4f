// Decides what runs when: mini-batches on learners in rounds, concurrent averaging, evaluation, restarts. The scheduler
// is the only place where a host thread waits for a device.
//
// A run may have several processes, each with a scheduler of its own. Learners are numbered over all of them, process
// by process, and each process gets the mini-batches of its learners. All processes must make the same calls; calls
// that wait also wait for the other processes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "dataflow/input/batches/batch_share.h"
#include "dataflow/split/parameter_part.h"
#include "engine/collective.h"
#include "engine/process/world.h"
#include "learners/learner_pool.h"
#include "scheduler/central_statistics.h"
#include "scheduler/diverged.h"
#include "scheduler/learning_rate.h"
#include "scheduler/loss_watch.h"
#include "scheduler/moving_average.h"
#include "scheduler/progress.h"
#include "scheduler/pushes.h"
#include "scheduler/ring_queue.h"
#include "scheduler/ring_slots.h"
#include "scheduler/training_state.h"
#include "sma/synchronizer.h"

namespace arbalest::scheduler {

class ShardedPushes;

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
  bool measures_gradients = false;           // whether Progress gets samples of the gradients' spread
  std::optional<SpikeRule> spike = {};       // what counts as a spike of the training loss; none: nothing does
  // Rounds (averagings; steps under s_sgd) between two comparisons of what all devices must hold alike; 0: never.
  int compare_rounds = 0;
  // A finite ring of training mini-batches on which the model's running statistics are measured whenever it is
  // evaluated or saved. Null: the model keeps the mean of the replicas' statistics, or the loaded ones.
  dataflow::BatchRing* statistics_ring = nullptr;
};

// The source of the central model's running statistics.
enum class Statistics {
  kReestimated,  // measured on Options::statistics_ring, if there is one; this takes as long as evaluating its
                 // mini-batches
  // The mean of the replicas' statistics. In a moving average, earlier re-estimated statistics are part of the mean,
  // too.
  kAveraged
};

struct Evaluation {
  dataflow::MetricSums sums = {};  // over the examples, of which there is at least one
  std::int64_t examples = 0;
  // As in Progress, for the replicas at this point. 0 if the model is not their mean, and for z right after an
  // averaging.
  double replica_distance = 0.0;
  double replica_spread = 0.0;

  double loss() const noexcept { return sums.loss() / static_cast<double>(examples); }
};

class Scheduler {
 public:
  // Creates the learners and initializes z and every replica with the job's seed. Pools (one per device), rings,
  // collective (one rank per pool) and `world` must outlive the scheduler.
  Scheduler(const Options& options, std::span<const std::unique_ptr<learners::LearnerPool>> pools,
            engine::Collective& collective, engine::process::World& world);
  // Host memory during initialization and snapshot(): the model in canonical order.
  static std::size_t host_bytes(const dataflow::ParameterLayout& parameters) {
    return static_cast<std::size_t>(parameters.numbers()) * sizeof(float);
  }
  // Waits for all enqueued work.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Learners of all processes.
  int learners() const noexcept { return share_.all; }
  // Mini-batches enqueued since the start of the run, and the same number in epochs.
  std::uint64_t batches() const noexcept { return batches_; }
  double progress() const noexcept;
  // Learning rate of the next stride.
  float learning_rate() const noexcept;
  // From the next stride on, the learning rate is `factor` times that of the schedule. `drops`: how often the factor
  // has fallen since the start of the run. If that number changes, averaging restarts as at the drops of the schedule.
  void lower_rate(double factor, int drops);

  // Enqueues `strides` strides from `ring` and returns the results that have ended meanwhile; streams are not drained.
  // Throws Diverged, naming learner and task, when a loss, gradient or weight is not finite, or at a spike of the loss
  // (Options::spike). The model is then the last finite one and can still be evaluated and saved, and the host alone
  // knows the error: streams carry none, so restore() may go back to an earlier state. Throws kDevice if the devices'
  // copies of the model differ (Options::compare_rounds). Passes on errors of streams and of the input.
  //
  // One of several processes may find a divergence that the others do not, and all must end at the same stride. There
  // advance() and drain() keep it for take_divergence(), and further strides may follow.
  Progress advance(dataflow::BatchRing& ring, int strides);
  bool has_divergence() const;
  // Returns the first divergence since the last call, if there was one.
  std::optional<Diverged> take_divergence();
  // Returns the advice of the present scheme to a run that has diverged (sma::divergence_remedy).
  std::string divergence_remedy() const;
  // Strides by which this process may be ahead of the others. It need not wait for anything of theirs that is younger.
  int strides_apart() const;
  // Waits for all enqueued work and returns its results.
  Progress drain();

  // Returns the sums of the metrics of the model, or of its moving average, over all batches of `ring`, which are
  // spread over all learners of all processes. Leaves the ring at its start. If replicas are pulled to the center z, or
  // share it, the model is z. Otherwise it is the mean of the replicas, in a separate vector; right after an averaging
  // that assigns z, this mean equals z. Call only when drained. Throws kData if no example can be read.
  Evaluation evaluate(dataflow::BatchRing& ring);

  // Evaluates each learner's own weights and returns the mean over learners of the mean loss over the labeled examples
  // of `ring`. Leaves the ring at its start. Call only when drained, and only if Options::evaluates_replicas.
  double evaluate_replicas(dataflow::BatchRing& ring);

  // Returns the mean loss of the present weights over the first `rounds` mini-batches of each learner, computed as in
  // training but without a step; none if it is not finite, or if no example can be read. Leaves the ring at its start.
  // Training goes on as without the call. Call only before the first stride.
  std::optional<double> training_loss(dataflow::BatchRing& ring, int rounds);

  // From the next stride on, `learners[d]` learners train on device d; they must be prepared (LearnerPool::prepare).
  // All of them, new or not, continue from the model, with zero optimizer state and without the center's momentum. The
  // sequence of mini-batches continues; pull and learning rate follow from the new number. Call only when drained, and
  // only if Options::may_resize. The ring must have enough slots (needed_ring_slots).
  void resize(std::span<const int> learners);
  // Switches to `synchronization`, one of Options::switches, from the next stride on. `scaling`: how the learning rate
  // then scales with the number of learners. The model becomes the center and the weights of every learner. The
  // optimizers' state is kept if the scheme says so (sma::Options::keeps_state_at_switch) and the number of learners
  // does not change; else it is zeroed. Call only when drained. `learners`: as for resize().
  void switch_to(const sma::Options& synchronization, RateScaling scaling, std::span<const int> learners);

  // Returns the model, or its moving average, in canonical order; by default with the statistics that evaluate() uses.
  // Waits for all enqueued work and drops its Progress.
  std::vector<dataflow::NamedTensor> snapshot(Statistics statistics = Statistics::kReestimated);
  // Sets the center and every replica to `tensors`. Call only before the first stride.
  void load(std::span<const dataflow::NamedTensor> tensors);

  // Compares at once what all devices must hold alike, if Options::compare_rounds asks for comparisons. Throws kDevice
  // as advance() does. Call only when drained.
  void verify_copies();

  // Copies the state of the training to the host, after verify_copies(). Each process gets the vectors of its own
  // learners, and rank 0 all other vectors, too. Later strides are the same as without the call. Call only when
  // drained. `memory`: an earlier state of this scheduler that the new one takes the place of.
  TrainingState save(TrainingState memory = {});
  // Upper bound of a saved state's size, in copies of the model (host_bytes). `is_whole`: not only the learners.
  static std::int64_t state_vectors(int learners, std::size_t state_slots, bool is_whole = true) {
    constexpr std::int64_t kOtherVectors = 6;  // the model twice: as it is evaluated, and as learners go on from it
    return (is_whole ? kOtherVectors : 0) + learners * static_cast<std::int64_t>(1 + state_slots);
  }
  // Goes on from a saved state with `synchronization`, its `scaling` of the learning rate, and `learners[d]` prepared
  // learners on device d. With as many learners in all as the state has, later strides are the same as those of the
  // scheduler that saved it. With another number they are those after a resize() at that point. Enqueued work is
  // abandoned, and its results are lost. lower_rate() must follow if the state had another factor. Restart the training
  // ring at the mini-batch state.batches afterwards. Throws kCheckpoint if the state is of another model or optimizer,
  // and as verify_copies() does. Of the learners' vectors, a process needs only those of its own learners.
  void restore(const TrainingState& state, const sma::Options& synchronization, RateScaling scaling,
               std::span<const int> learners);

 private:
  struct Task {
    learners::Ticket ticket;
    std::size_t learner = 0;              // number over all devices of this process
    dataflow::BatchRing* ring = nullptr;  // the ring that its batch came from
  };

  // One stride that is under way.
  struct Stride {
    std::size_t tasks = 0;
    bool averages = false;
    bool measures = false;      // whether the gradients' spread is measured
    bool compares = false;      // whether the devices' copies are compared
    std::uint64_t round = 0;    // rounds up to its end
    std::uint64_t batches = 0;  // mini-batches up to its end
  };

  void create_learners();
  // Takes over the pools' active learners.
  void collect_learners();
  // Connects synchronizer and learners.
  void bind(const sma::Options& synchronization);

  // These enqueue work; they are defined in rounds.cc.
  void enqueue_stride(dataflow::BatchRing& ring);
  void enqueue_pulled_round(dataflow::BatchRing& ring);
  void enqueue_assigned_step(dataflow::BatchRing& ring);
  void enqueue_reduced_step(dataflow::BatchRing& ring);
  // Enqueues `steps` steps of every learner, which wait for no other learner.
  void enqueue_steps(dataflow::BatchRing& ring, int steps, const engine::StepParameters& each);
  void enqueue_gradients(dataflow::BatchRing& ring, const engine::StepParameters& step);
  void enqueue_gradient(std::size_t learner, const dataflow::Batch& batch, const engine::StepParameters& step);
  // Does what enqueue_gradients() does, for a split model: learners that have work wait for the others, so all batches
  // are taken first.
  void enqueue_together(dataflow::BatchRing& ring, const engine::StepParameters& step);
  // Calls enqueue(learner, batch) for all batches of a finite ring, and take(ticket) in their order.
  using EnqueueBatch = std::function<learners::Ticket(std::size_t, const dataflow::Batch&)>;
  using TakeTicket = std::function<void(const learners::Ticket&)>;
  void spread(dataflow::BatchRing& ring, const EnqueueBatch& enqueue, const TakeTicket& take);
  // These copy vectors vector_of(pool), one per pool, to the host. gather_parts() returns the split parameters of all
  // devices as whole tensors, and is a call of World's operations if there are any. whole() returns all parameters:
  // these, and otherwise those of the first pool.
  using PoolVector = std::function<const float*(std::size_t)>;
  Tensors gather_parts(dataflow::VectorPart part, const PoolVector& vector_of) const;
  Tensors whole(const PoolVector& vector_of, Tensors memory = {}) const;
  dataflow::DeviceVector on_device(std::size_t pool, const float* vector) const;
  // The devices of a split model; null if the model is not split.
  engine::ExchangeGroup* exchange() const { return pools_.front()->exchange(); }
  // Each update waits for after[device]; `after` may be empty.
  void enqueue_updates(dataflow::BatchRing& ring, std::span<const engine::Event> after);
  engine::StepParameters step_parameters() const;
  // These functions implement asynchronous SGD (asynchronous.cc).
  void restart_pushes();
  void restart_sharded();
  // Starts as many pushes as there are learners, and takes those that complete before.
  void advance_pushes(dataflow::BatchRing& ring, Progress& results);
  void start_pushes(dataflow::BatchRing& ring, Progress& results);
  // The idle learner pulls and begins the mini-batches of its next push.
  void start_push(dataflow::BatchRing& ring, std::size_t number);
  // Waits for the learner that completes its gradients first, takes their results and gives them to the server.
  void take_push(Progress& results);
  // Completes all pushes; does nothing without a server.
  void drain_pushes(Progress& results);
  // Reports if the server has refused the learner's last push, which must have ended.
  void check_applied(std::size_t number);
  void report_refused(const std::string& learner, std::uint64_t mini_batch, std::int32_t refused);
  // Forgets the pushes under way. The streams must be idle.
  void forget_pushes();
  // Completes the server's weights, of which each process has a shard. Pushes must be drained.
  void gather_server_weights();
  // Copies the server's weights and optimizer state to all learners, or the state of one to the server. Neither does
  // anything without a server.
  void hand_out_server_state();
  void hand_out_shards();
  void take_over_state();
  // Sets ready_[d][j] to the point after all work of each learner so far.
  void record_ready();
  void restart_at_drops();
  // Copies the center to the weights of every learner, once `ready`, by device, has passed.
  void assign_center(std::span<const engine::Event> ready, learners::OptimizerState state);
  // Updates the model if it is the replicas' mean; learners wait for that before their next update. Returns false if
  // nothing is averaged. Gives all devices the server's weights, if there is a server. Weights that learners share may
  // be read by what is enqueued next on the averaging stream; the next steps must wait for that.
  bool gather_model();
  // Makes all learners of a split model wait until no all-reduce is under way.
  void wait_for_all_reduce();
  // Compares what all devices must hold alike if that is due; returns whether there will be a result. Call it after a
  // round.
  bool compare_copies();
  // Measures the gradients' spread if a measurement is due; returns whether there will be a sample.
  bool measure_gradients();
  double epochs_of(std::uint64_t batches) const noexcept;
  bool is_right_after_averaging() const noexcept { return steps_left_ == 0; }

  void regroup(const sma::Options& synchronization, std::span<const int> learners, bool keeps_state);
  // Averages the current model into every pool's evaluation weights, which no work may be reading. If `rounds_them`,
  // also updates their copies in low precision.
  void move_averages(bool rounds_them);
  // Takes this process's share of the ring's mini-batches, if it has another one.
  void take_share(dataflow::BatchRing& ring, std::uint64_t first) const;
  // Does the same for an evaluation. In each epoch another process gets a given mini-batch, so that data that differ
  // between processes are found.
  void take_evaluation_share(dataflow::BatchRing& ring) const;
  void report(const Diverged& divergence);
  void pop_stride(Progress& progress);
  void pop_averaging(Progress& progress);
  void take_result(const Task& task, Progress& progress);
  void check_finite(const Task& task);
  void watch_loss(const Task& task);
  void check_copies(const Stride& stride);
  // Waits for all enqueued work; there may be no tasks.
  void settle();
  void save_center(TrainingState& state, bool right_after_averaging);
  void save_learners(TrainingState& state);
  void restore_replicas(const TrainingState& state);
  // Updates every pool's evaluation weights and their running statistics. Call only when drained.
  void refresh_evaluation_weights(Statistics statistics);
  void forget_statistics();
  void measure_statistics();
  // Blocks the host until `event` has passed. Throws the first error of the work before it.
  void wait(const engine::Event& event);
  // Call while an exception is handled. Ends the exchanges of a split model, in which other devices may wait for the
  // one that failed. Throws the error of a device of this process, if one failed, or else the exception: a device whose
  // peer has failed knows only that.
  [[noreturn]] void rethrow_cause();
  // Waits for all streams and forgets all enqueued work.
  void abandon() noexcept;

  Options options_;
  std::span<const std::unique_ptr<learners::LearnerPool>> pools_;
  engine::process::World& world_;
  std::vector<learners::Learner*> learners_;  // of all pools of this process, by number
  std::vector<std::size_t> pool_of_;          // by learner
  dataflow::BatchShare share_;                // the learners of this process among all
  sma::Synchronizer synchronizer_;

  MovingAverage moving_average_;
  std::uint64_t batches_ = 0;
  double rate_factor_ = 1.0;
  int extra_drops_ = 0;  // drops of rate_factor_
  int drops_ = 0;        // drops of the learning rate that have taken effect
  int steps_left_ = 0;   // steps left in the present round, if the center is assigned
  std::uint64_t enqueued_strides_ = 0;
  std::uint64_t rounds_ = 0;    // averagings since the start of the run, and steps under s_sgd
  std::uint64_t equal_at_ = 0;  // mini-batches at the last point where the devices' copies were equal
  std::optional<LossWatch> loss_watch_;
  mutable std::mutex divergence_mutex_;            // the thread of sharded_ may find one
  std::optional<Diverged> divergence_;             // found but not taken
  std::optional<sma::AveragingTicket> gathered_;   // mean of the replicas in the present evaluation weights
  Pushes pushes_;                                  // under async_sgd; the others of these queues are then empty
  std::unique_ptr<ShardedPushes> sharded_;         // takes the place of pushes_ in several processes; null: one
  bool is_gathered_ = false;                       // whether all processes have the server's weights
  RingQueue<Task> tasks_;                          // enqueued training tasks, oldest first
  RingQueue<Stride> strides_;                      // strides that the tasks belong to
  RingQueue<sma::AveragingTicket> averagings_;     // averagings of the strides that average
  std::vector<std::vector<engine::Event>> ready_;  // by pool and learner: passes when the weights may be read
  std::vector<std::vector<engine::Event>> parts_;  // by learner: pass when the parts of its gradient are final
  std::vector<dataflow::Batch> together_;          // of a split model: by learner, batches being enqueued
  std::vector<learners::Ticket> last_tasks_;       // by learner: tasks of the step that is being enqueued
  std::vector<engine::Event> evaluation_ready_;    // by pool: passes when the evaluation weights are complete
  std::optional<CentralStatistics> statistics_;
};

}  // namespace arbalest::scheduler
