// Keeps the replicas of a run together by one of the schemes of sma/options.h. The synchronizer sees replicas as
// streams and flat vectors, and knows nothing of learners. Its user needs to know only how a round is coupled.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "engine/passes/shared_weights.h"
#include "sma/center.h"
#include "sma/copy_comparison.h"
#include "sma/gradient_spread.h"
#include "sma/options.h"
#include "sma/parameter_server.h"
#include "sma/shards/shards.h"

namespace arbalest::sma {

// The synchronizer's view of one replica; all vectors are on one device.
struct ReplicaView {
  engine::Stream* stream = nullptr;      // stream that writes the weights
  const float* weights = nullptr;        // [elements]
  const float* gradient = nullptr;       // [elements]
  std::vector<const float*> state = {};  // the optimizer's vectors, [trainable]
  // kServer: what the replica pushes (sma::Push).
  const float* pushed = nullptr;          // [trainable]
  const float* gradient_scale = nullptr;  // null: gradients are not clipped, or the pushed one is already
};

// The vectors that the updates of a device's replicas read (learners::UpdateSources).
struct UpdateOperands {
  const float* references[2] = {nullptr, nullptr};  // null unless Coupling::kPull
  const float* gradient = nullptr;                  // null unless Coupling::kGradient
  int push_every = 0;                               // kServer: mini-batches of a push; 0: a replica updates itself
  engine::SharedWeights* shared = nullptr;          // null unless Coupling::kShared
};

// The vectors of a device's center that later rounds depend on, [elements] each.
struct CenterView {
  float* present = nullptr;
  float* before = nullptr;    // z of the round before: the center's momentum
  float* velocity = nullptr;  // null unless a scheme of the run uses Nesterov's rule
};

// The schemes and numbers of learners that a run may use.
struct SynchronizerNeeds {
  std::vector<Options> schemes;  // the first scheme and those that the run may switch to
  int most_learners = 1;         // over all devices of all processes
  bool may_resize = false;
  std::size_t state_slots = 0;   // number of the optimizer's vectors
  engine::UpdateRule rule = {};  // the optimizer, and the ranges of the flat vectors: for a server
  std::span<const engine::UpdateRange> ranges = {};
  bool measures_gradients = false;
  bool compares_copies = false;
  int process = 0;  // of `processes`, each of which serves a shard of the server's weights
  int processes = 1;
};

class Synchronizer {
 public:
  // Memory of each of `devices`, which are those of this process.
  static std::vector<std::size_t> device_bytes(const SynchronizerNeeds& needs, std::span<engine::Device* const> devices,
                                               const CenterSizes& sizes);
  // Whether some scheme of the run has a server (kServer).
  static bool has_server(const SynchronizerNeeds& needs);

  // The devices and the collective (one rank per device) must outlive it. result_slots: a ticket's result stays valid
  // until this many more averagings are enqueued; also the limit of measurements that are not taken yet.
  Synchronizer(const SynchronizerNeeds& needs, std::span<engine::Device* const> devices, const CenterSizes& sizes,
               engine::Collective& collective, int result_slots);

  // Sets the scheme and the replicas of each device of this process; other processes have `elsewhere` more. All
  // enqueued work must have ended. Afterwards the replicas' updates must read operands(), and restart() or set_center()
  // must set all their weights.
  void bind(const Options& options, std::vector<std::vector<ReplicaView>> replicas, int elsewhere = 0);
  Coupling coupling() const noexcept { return coupling_; }
  const Options& options() const noexcept { return options_; }
  UpdateOperands operands(std::size_t device);

  // kPull: StepParameters::pull and ::reference (an index into operands().references) of the last update of this round.
  // Read both before the round's synchronize().
  float pull() const { return options_.pull_for(count_); }
  int reference() const { return center_->parity(); }

  // kPull, kAssign. Enqueues one averaging that waits for ready[d][j], after which the weights of replica j of device d
  // may be read. learning_rate: gamma of the round's last step, for SlowMo. Does not block the host. Returns one event
  // per device.
  //   kPull: after it the weights may change. Each update of the round waits for it, and must have ended before the
  //          next round's `ready`.
  //   kAssign: after it center(d) and, with LocalState::kAverage, mean_state(d, slot) are complete and must be copied
  //          to the replicas.
  std::span<const engine::Event> synchronize(std::span<const std::vector<engine::Event>> ready, float learning_rate);
  AveragingTicket ticket() const { return center_->ticket(); }
  const float* center(std::size_t device) const { return center_->present(device); }
  const float* mean_state(std::size_t device, std::size_t slot) const { return center_->state(device, slot); }

  // kGradient. Enqueues the mean of elements [begin, end) of the gradients, which are final once ready[d][j] has
  // passed.
  void reduce_gradients(std::span<const std::vector<engine::Event>> ready, std::int64_t begin, std::int64_t end);
  // By device: the event after which operands(d).gradient is complete.
  std::span<const engine::Event> reduced() { return center_->record(); }

  // kServer, in one process. Pushes the gradient of replica number `learner` over all devices, after `ready`. Returns
  // the event after which the gradient may change.
  engine::Event push(std::size_t learner, const engine::Event& ready, float learning_rate);
  // kServer. The server's weights on the first device; they are complete after server().pushed(). With several
  // processes, each process serves one shard: the other elements are stale until Scheduler::gather_server_weights().
  float* server_weights() const { return center_->present(0); }
  ParameterServer& server() { return *server_; }
  engine::Stream& server_stream() const { return center_->stream(0); }
  const Shards& shards() const noexcept { return shards_; }

  // kShared. Work that is enqueued next on the averaging streams may read the shared weights: it follows `ready`, after
  // which replica j of device d has taken its steps. Later steps must wait for it.
  void read_shared_after(std::span<const std::vector<engine::Event>> ready);

  // The model of a run is z under kPull, the server's weights under kServer, the shared weights under kShared, the
  // replica under kNone, and otherwise the replicas' mean, which equals z right after an averaging. If must_gather(),
  // call gather() before read_model(), and not otherwise. gather() enqueues the replicas' mean. It waits for `ready` as
  // synchronize() does, and returns by device the event after which the weights may change.
  bool must_gather(bool right_after_averaging) const noexcept {
    return coupling_ == Coupling::kGradient || (coupling_ == Coupling::kAssign && !right_after_averaging);
  }
  // kServer. Copies the server's weights to the other devices, where read_model() reads them.
  void spread_server_weights();
  std::span<const engine::Event> gather(std::span<const std::vector<engine::Event>> ready);
  // Averages the model into `average` (engine/passes/moving_average.h; a weight of 1 makes it a copy) and, unless null,
  // rounds the result to `rounded`; both are [elements + frozen] on the device. Frozen elements are copied. Returns the
  // event after which they are complete.
  engine::Event read_model(std::size_t device, float* average, float weight, engine::BFloat16* rounded);

  // Enqueues a measurement of the gradients' spread (SynchronizerNeeds::measures_gradients) after `ready`, as for
  // synchronize(). The gradients must stay until the returned events, by device, have passed. Returns no events if
  // nobody has to wait: nothing is measured, or the only learner's own stream measures. is_measured(): take_spread()
  // will have one more sample.
  std::span<const engine::Event> measure_gradients(std::span<const std::vector<engine::Event>> ready);
  bool is_measured() const noexcept { return is_measured_; }
  // Returns the oldest measurement that was not taken; blocks the host until it is complete.
  SpreadSample take_spread() {
    return spread_->take([this](const engine::Event& event) { wait(event); });
  }
  // Forgets measurements that were not taken. The streams must be idle.
  void forget_spreads() {
    if (spread_) spread_->forget();
  }

  // Enqueues a comparison of what all devices must hold alike (SynchronizerNeeds::compares_copies): the center, with
  // statistics, or under kGradient every replica's trainable weights. The latter must be final once ready[d][j] has
  // passed, and must stay until a later reduced() has. Returns false if there is nothing to compare.
  bool compare_copies(std::span<const std::vector<engine::Event>> ready);
  // Returns the hashes of the oldest comparison that was not taken, by device; valid until the next call. Blocks the
  // host until they are complete.
  const CopyHashes& take_comparison() {
    return comparison_->take([this](const engine::Event& event) { wait(event); });
  }
  // Forgets comparisons that were not taken. The streams must be idle.
  void forget_comparisons() {
    if (comparison_) comparison_->forget();
  }

  // Sets z to the model and zeroes the center's momentum; averages the replicas first if must_gather(). Returns by
  // device the event after which center(d) may be copied. Requires has_center().
  std::span<const engine::Event> restart(std::span<const std::vector<engine::Event>> ready, bool right_after_averaging);
  // Sets the device's copy of z to `weights`: [elements], in host memory or on the device, and zeroes the center's
  // momentum. Call it for every device, with equal values, at a point without work under way. Blocks the host.
  void set_center(std::size_t device, const float* weights);
  bool has_center() const noexcept { return center_.has_value(); }

  // A checkpoint holds these vectors, for kPull and kAssign. No work may be under way when it is read or written.
  CenterView center_view(std::size_t device) const;
  // The learning rate at the previous averaging, 0 if there was none: SlowMo's momentum depends on it.
  float last_learning_rate() const noexcept { return last_learning_rate_; }
  void continue_from(float last_learning_rate) noexcept { last_learning_rate_ = last_learning_rate; }
  // The model on a device, as read_model() reads it: call gather() before it if must_gather().
  const float* model(std::size_t device) const;

  // Blocks the host until `event`, which may follow a synchronization, has passed: Collective::wait.
  void wait(const engine::Event& event);
  // Blocks the host until all work enqueued on the averaging streams has ended. Throws its first error.
  void settle();
  // Blocks the host until the averaging streams have finished. Call it before the learners' streams are
  // drained: if a device has failed, they would wait forever for an averaging.
  void drain() noexcept;

 private:
  std::int64_t elements_;
  std::int64_t frozen_;  // elements behind them that no scheme touches
  std::optional<Center> center_;
  Shards shards_;
  int process_ = 0;
  std::optional<ParameterServer> server_;  // works on z of the first device, on that device's averaging stream
  engine::SharedWeights shared_;           // z of the only device
  std::optional<GradientSpread> spread_;
  bool is_measured_ = false;
  std::optional<CopyComparison> comparison_;
  bool has_velocity_ = false;
  Options options_;
  Coupling coupling_ = Coupling::kNone;
  int count_ = 0;
  std::vector<std::vector<ReplicaView>> replicas_;  // by device
  std::vector<std::vector<const float*>> copies_;   // by device: vectors of the comparison that is being enqueued
  bool mean_is_model_ = false;                      // whether gather() has computed the mean
  float last_learning_rate_ = 0.0F;                 // at the previous averaging; 0: there was none
};

}  // namespace arbalest::sma
