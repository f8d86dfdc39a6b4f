// Lets workers begin the blocks of a pass out of step, within a bounded delay.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace arbalest::scheduler {

// Every worker of every process does its part of every block, in order. Each process has a window of its own, with its
// workers. Block t may begin once all blocks before t - max_delay are done. All functions may be called by any thread.
class DelayWindow {
 public:
  DelayWindow(int workers, std::int64_t blocks, int max_delay, int processes = 1);

  // Waits until `block` may begin. Returns false if the pass ends before it.
  bool start(std::int64_t block);
  // The calling worker's part of `block` is done. Returns true for the last worker of this process.
  bool publish(std::int64_t block);
  // The part of one process is here. Returns true for the last process, whose caller must call finish().
  bool arrive(std::int64_t block);
  void finish(std::int64_t block);

  // Ends the pass after block + max_delay. Call it before finish(block): until then no later block has begun in any
  // process, so all processes that learn of the stop from `block` end their pass at the same place.
  void stop_after(std::int64_t block);
  // Ends the pass at once: nobody waits any longer. For a pass that failed.
  void cancel();

  // Returns the first block that is not done.
  std::int64_t finished();
  // Returns whether all blocks of the pass are done, or it was canceled.
  bool is_over();
  // Waits until all blocks of the pass are done, and returns their number; -1 after cancel().
  std::int64_t wait_for_end();

 private:
  // Counts of what is done of a block.
  struct Parts {
    int workers = 0;
    int processes = 0;
    bool is_done = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  int workers_;
  int processes_;
  int max_delay_;
  std::int64_t end_;           // blocks of the pass
  std::int64_t finished_ = 0;  // blocks before this one are done
  std::vector<Parts> parts_;   // [blocks]
  bool is_cancelled_ = false;
};

}  // namespace arbalest::scheduler
