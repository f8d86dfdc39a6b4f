// Lets workers begin the blocks of a pass out of step, within a bounded delay.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace arbalest::scheduler {

// Every worker does its part of every block, in order. Block t may begin once all blocks before t - max_delay are done.
// The worker that publishes the last part of a block completes the block. All functions may be called by any thread.
class DelayWindow {
 public:
  DelayWindow(int workers, std::int64_t blocks, int max_delay);

  // Waits until `block` may begin. Returns false if the pass ends before it.
  bool start(std::int64_t block);
  // The calling worker's part of `block` is done. Returns true for the last worker, which must call finish().
  bool publish(std::int64_t block);
  void finish(std::int64_t block);

  // Ends the pass after the blocks that have begun.
  void stop();
  // Ends the pass at once: nobody waits any longer. For a pass that failed.
  void cancel();

  // Waits until all blocks of the pass are done, and returns their number; -1 after cancel().
  std::int64_t wait_for_end();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int workers_;
  int max_delay_;
  std::int64_t end_;           // blocks of the pass
  std::int64_t begun_ = 0;     // blocks before this one have begun
  std::int64_t finished_ = 0;  // blocks before this one are done
  std::vector<int> parts_;     // [blocks] published parts
  std::vector<bool> done_;     // [blocks]
  bool is_cancelled_ = false;
};

}  // namespace arbalest::scheduler
