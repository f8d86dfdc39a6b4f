// Threads of the host that prepare input. oneTBB underneath; tasks must not block.
#pragma once

#include <functional>
#include <memory>

namespace arbalest::engine::host {

class Pool {
 public:
  // At most `threads` tasks run at a time.
  explicit Pool(int threads);
  ~Pool();  // waits for all tasks
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Runs `task` some time later on a thread of the pool. The task must not throw and must not wait for others.
  void submit(std::function<void()> task);
  // Returns when all submitted tasks have ended.
  void drain();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arbalest::engine::host
