// Asynchronous SGD in one process, whose scheduler takes completed gradients itself. A run of several processes has a
// thread that does so (sharded_round.h), because others wait for it whatever the scheduler waits for.
#pragma once

#include <vector>

#include "engine/host/completions.h"
#include "scheduler/replicas/ring_queue.h"
#include "scheduler/rounds/dispatcher.h"
#include "scheduler/rounds/pushed_round.h"

namespace arbalest::scheduler {

class ServerRound final : public PushedRound {
 public:
  ServerRound(const sma::Options& options, const RoundContext& context);

  // Starts as many pushes as there are learners, and takes those that complete before.
  IterationEnd enqueue(dataflow::BatchRing& ring, Progress& progress) override;
  std::uint64_t drain(Progress& progress) override;
  void forget() noexcept override;
  // Copies the server's weights to the other devices.
  std::optional<sma::AveragingTicket> gather() override;
  void hand_out_state() override;

 private:
  // The pushes of one learner.
  struct Pushes {
    RingQueue<learners::Ticket> tasks{0};         // of the push under way, oldest first
    float learning_rate = 0.0F;                   // of the push under way
    std::optional<std::uint64_t> unchecked = {};  // last mini-batch of a push that the server may have refused
  };

  // The idle learner pulls and begins the mini-batches of its next push.
  void start(std::size_t number);
  // Waits for the learner that completes its gradients first, takes their results and gives them to the server.
  void take(Progress& progress);
  // Reports if the server has refused the learner's last push, which must have ended.
  void check_applied(std::size_t number);

  Dispatcher dispatcher_;
  engine::Completions completions_;      // gets the number of a learner whose gradients are complete
  dataflow::BatchRing* ring_ = nullptr;  // the ring that the tasks came from
  std::vector<Pushes> pushes_;           // by learner
  std::uint64_t taken_ = 0;              // pushes that were not told yet
};

}  // namespace arbalest::scheduler
