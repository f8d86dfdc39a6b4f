// Asynchronous SGD over several processes: carries out what sma::ShardProtocol asks for, with the learners of this
// process, the server of its shard, and messages to the other processes.
//
// Other processes wait for this one's shard, and for the clocks of its learners, whatever its scheduler waits for. So a
// thread of its own takes messages and completed work. The scheduler's thread and this one take turns: whoever holds
// the mutex may use learners, server, ring and protocol.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "dataflow/input/batches/batch_ring.h"
#include "engine/host/completions.h"
#include "engine/process/world.h"
#include "learners/learner.h"
#include "scheduler/replicas/progress.h"
#include "scheduler/replicas/replicas.h"
#include "sma/parameter_server.h"
#include "sma/shard_protocol.h"
#include "sma/shards.h"
#include "sma/synchronizer.h"

namespace arbalest::scheduler {

class ShardedPushes final : private sma::ShardWork {
 public:
  // These are called on either thread, with the mutex held. Learners are numbered over this process.
  struct Calls {
    // A mini-batch of `learner`, from `ring`, has ended: checks its result, and adds it.
    std::function<void(const learners::Ticket& ticket, std::size_t learner, dataflow::BatchRing& ring,
                       Progress& results)>
        take_result;
    // The server has refused the push of `learner`, a number over all processes, that ended with `mini_batch`.
    std::function<void(std::uint32_t learner, std::uint64_t mini_batch, std::int32_t refused)> report_refused;
  };

  // Host memory for the learners of one process: staging, and the messages that may be under way.
  static std::size_t host_bytes(int learners, const sma::CentralSizes& sizes);

  // For the learners of this process and a server that was restarted, drained. All processes make it at the same point.
  // `synchronizer` and all that it is given must outlive it.
  ShardedPushes(const Replicas& replicas, sma::Synchronizer& synchronizer, const sma::Options& options, Calls calls);
  ~ShardedPushes();
  ShardedPushes(const ShardedPushes&) = delete;
  ShardedPushes& operator=(const ShardedPushes&) = delete;

  // Lets each learner of this process push once more, in any distribution, and returns when all of these pushes have
  // started. Throws the error of any work, and kPeer if another process has died or failed.
  void advance(dataflow::BatchRing& ring, const engine::StepParameters& step);
  // Returns when all learners of all processes are idle and all pushes are applied. Throws likewise. All processes call
  // it at the same point, and one that hangs before it is named.
  void drain();
  // Returns the results since the last call.
  Progress take_results();
  // If pushes are under way, ends the thread, and loses them; then no further call may follow.
  void abandon() noexcept;

 private:
  // The kinds of values in completions_; the number of a learner is added.
  enum Event : std::uint64_t { kWake = 0, kComputed = 1, kWeightsRead = 2, kApplied = 3 };
  static constexpr unsigned kEventShift = 48;

  struct Grant {
    engine::StepParameters step;
    std::size_t pushes = 0;
  };
  // A learner of this process.
  struct Own {
    learners::Team* team = nullptr;
    learners::Learner* learner = nullptr;
    engine::Buffer staging = {};  // host: the pulled weights, then the pushed gradient
    engine::Buffer scale = {};    // host: float, factor of the gradient
    std::vector<dataflow::Batch> batches = {};
    std::vector<learners::Ticket> tasks = {};
    engine::StepParameters step = {};
  };
  // The work of this process's server for a learner of any process.
  struct Served {
    sma::ShardMessage weights = {};  // that are being read
    engine::Event weights_read = {};
    sma::ShardMessage push = {};  // that is being applied
    engine::Event applied = {};
    float scale = 1.0F;
  };

  void stop() noexcept;
  void run();
  void fail_here() noexcept;
  void handle(std::uint64_t value);
  void take_messages();
  void finish_computed(std::size_t number);
  void finish_applied(std::size_t learner);
  template <typename Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, const Condition& condition);

  // sma::ShardWork
  bool has_batches() override;
  void start(std::size_t learner) override;
  void read_weights(std::size_t learner) override;
  void keep_weights(int from, const sma::ShardMessage& weights) override;
  void compute(std::size_t learner) override;
  sma::ShardMessage gradient(std::size_t learner, int to) override;
  void apply(sma::ShardMessage push, std::int64_t staleness) override;
  void send(int to, sma::ShardMessage message) override;

  const sma::Shards& shards() const { return synchronizer_.shards(); }
  Own& own(std::size_t learner) { return own_[learner - first_]; }
  void report(engine::Stream& stream, Event event, std::size_t number);

  engine::process::World& world_;
  const Calls calls_;
  sma::Synchronizer& synchronizer_;
  const sma::Options& options_;
  dataflow::BatchRing* ring_ = nullptr;
  const std::size_t first_;  // number of the first learner of this process

  std::mutex mutex_;  // guards all below but completions_, and what they refer to
  std::condition_variable changed_;
  sma::ShardProtocol protocol_;
  std::vector<Own> own_;        // by number over this process
  std::vector<Served> served_;  // by number over all processes
  std::deque<Grant> grants_;
  std::size_t applying_ = 0;  // pushes
  Progress results_;
  std::exception_ptr failure_;
  bool stops_ = false;

  engine::Completions completions_;
  std::thread thread_;
};

}  // namespace arbalest::scheduler
