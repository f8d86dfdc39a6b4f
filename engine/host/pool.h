// The thread pool of the host, which prepares input. It runs on oneTBB; its tasks must not block.
#pragma once

#include <cstddef>
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

  // Runs `task` some time later on a thread of the pool. The task must not throw and must not wait for other tasks.
  void submit(std::function<void()> task);
  // Runs body(i) for every i in [0, count), each as a task, and returns when all tasks of the pool have ended. If it
  // throws because a task could not be submitted, the submitted tasks have ended, too.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);
  // Returns when all submitted tasks have ended.
  void drain() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arbalest::engine::host
