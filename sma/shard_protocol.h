// One process's part of asynchronous SGD over several processes. The server's weights w* are cut into as many
// contiguous shards as there are processes, and each process is the server of one shard. A learner pulls the weights of
// every shard, computes a gradient, and pushes each shard's part of it to its server.
//
// Every shard gets every push, so each server knows the clocks of all learners (sma/staleness_clocks.h). It keeps a
// pull back until the slowest clock allows the learner to start. So no shard gives a learner weights that miss more
// than the bound allows. A process sends a learner's pull behind its earlier pushes, and messages keep their order:
// what a learner pulls has its own pushes in it.
//
// A learner asks only once the shard of its own process allows it. So it uses up no push that a slower learner of the
// process needs, and a pull waits at another shard only for pushes that are under way to it.
//
// The protocol has no thread, no device and no clock: its owner tells it what has happened, and does the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "sma/idle_learners.h"
#include "sma/shard_message.h"
#include "sma/staleness_clocks.h"

namespace arbalest::sma {

// The work that the protocol asks for. Learners are numbered over all processes, from first_learner on here.
class ShardWork {
 public:
  virtual ~ShardWork() = default;

  // Whether there are mini-batches for the next push of one more learner.
  virtual bool has_batches() = 0;
  // A learner of this process starts: takes its mini-batches.
  virtual void start(std::size_t learner) = 0;
  // Reads this process's shard, after all pushes so far, for any learner. ShardProtocol::weights_read() must follow.
  virtual void read_weights(std::size_t learner) = 0;
  // Keeps the weights of the shard of process `from` for a learner of this process.
  virtual void keep_weights(int from, const ShardMessage& weights) = 0;
  // All weights are there for a learner of this process. ShardProtocol::computed() must follow.
  virtual void compute(std::size_t learner) = 0;
  // Returns what a learner of this process, which has computed, pushes to the shard of process `to`.
  virtual ShardMessage gradient(std::size_t learner, int to) = 0;
  // Applies a push to this process's shard, after all pushes so far. `staleness`: pushes of others since the learner
  // got the weights of this shard.
  virtual void apply(ShardMessage push, std::int64_t staleness) = 0;
  virtual void send(int to, ShardMessage message) = 0;
};

class ShardProtocol {
 public:
  // `work` must outlive it.
  ShardProtocol(int process, int processes, ShardWork& work);

  // All learners are idle, and their clocks are 0. This process has `learners` from `first_learner` on, of `all`.
  // `bound`: StalenessClocks. All processes call it at the same point, where is_drained() or nothing was opened.
  void restart(std::size_t first_learner, std::size_t learners, std::size_t all, std::optional<int> bound);

  // Begins a phase, which ends when all processes are drained. Until then messages of the next phase are kept.
  void open();
  bool is_open() const noexcept { return is_open_; }
  // Learners of this process may push so many times more, each whenever it can.
  void grant(int pushes);
  // Pushes that are granted and have not started.
  int granted() const noexcept { return granted_; }
  // No further grant follows in this phase.
  void drain();
  // Whether the phase has ended: all learners of all processes are idle, and their pushes were given to apply().
  bool is_drained() const noexcept { return !is_open_; }

  // Tells what has happened. These call the functions of ShardWork.
  void received(int from, ShardMessage message);
  void weights_read(ShardMessage weights);
  void computed(std::size_t learner);

  // Returns the other processes without whose messages this one cannot go on; none while it can.
  std::vector<int> awaited() const;

  // Clocks of all learners, as this process's shard has seen them.
  const StalenessClocks& clocks() const noexcept { return clocks_; }

 private:
  struct Peer {
    bool is_drained = false;             // in this phase
    std::deque<ShardMessage> held = {};  // of the next phase
  };
  struct Pull {
    std::size_t learner = 0;
    int process = 0;  // of the learner
  };

  bool is_here(std::size_t learner) const { return learner >= first_ && learner < first_ + learners_; }
  void handle(int from, ShardMessage message);
  void handle_held(std::size_t peer);
  void take_weights(int from, const ShardMessage& weights);
  void apply(ShardMessage push);
  // Lets idle learners start, and answers the pulls that wait, as far as the bound allows.
  void go_on();
  bool start_one();
  bool answer_one();
  void end_if_drained();

  const std::size_t process_;
  ShardWork& work_;
  std::vector<Peer> peers_;  // by process; unused for this one
  std::size_t first_ = 0;
  std::size_t learners_ = 0;
  StalenessClocks clocks_;
  IdleLearners idle_;                 // of this process
  std::vector<Pull> waiting_;         // pulls that are not answered, oldest first
  std::vector<Pull> reading_;         // pulls that are being answered
  std::vector<std::size_t> missing_;  // by learner of this process: shards whose weights are not there
  int granted_ = 0;
  bool is_open_ = false;
  bool drains_ = false;
  bool has_told_ = false;  // that this process is drained
};

}  // namespace arbalest::sma
