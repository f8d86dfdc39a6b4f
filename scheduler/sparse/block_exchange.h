// Gives each process the sums of the others for the blocks of one pass.
//
// Every process sends its sums of a block to all others, as messages, and adds all of them in the same order. So all
// processes take the same step and keep the same weights, to the last bit, without a server.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/process/world.h"
#include "scheduler/sparse/block_sums.h"

namespace arbalest::scheduler {

class BlockExchange {
 public:
  // `world`: null for a single process. All processes make one for the same pass, and begin no other one before all
  // have ended this pass.
  BlockExchange(engine::process::World* world, std::uint64_t pass, int max_delay);
  ~BlockExchange();
  BlockExchange(const BlockExchange&) = delete;
  BlockExchange& operator=(const BlockExchange&) = delete;

  // Sends this process's sums of the block at `position` of the pass, and returns. Any thread may call.
  void give(std::int64_t position, BlockSums sums);
  // Returns the position of a block for which another process's sums have come. Waits a moment; none if there was no
  // message. Throws kPeer if another process has died, failed or hangs. `finished`: all blocks before it are done. One
  // thread calls.
  std::optional<std::int64_t> receive(std::int64_t finished);
  // Ends the present wait of receive(). Any thread may call.
  void wake();
  // Returns the sums over all processes (sum_in_pairs.h) of a block whose sums have come from all of them. Any thread
  // may call, for each position once.
  BlockSums take_total(std::int64_t position);

 private:
  // Returns false if nothing has woken this thread for a while.
  bool wait();
  // Returns the ranks whose sums of a block are missing, if this process has given its own.
  std::vector<int> missing(std::int64_t position) const;
  std::vector<BlockSums>& place_of(std::int64_t position);

  engine::process::World* const world_;  // null: there are no others
  const std::uint64_t pass_;
  std::size_t rank_ = 0;
  std::vector<std::vector<BlockSums>> places_;  // a ring by position; by rank
  std::vector<std::int64_t> received_;          // blocks, by rank
  std::atomic<std::int64_t> given_{0};          // blocks
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_awake_ = false;  // a message has come, or wake() was called, since the last wait
};

}  // namespace arbalest::scheduler
