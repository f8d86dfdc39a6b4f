// Thread pool that reads and decodes input; it runs on oneTBB. A task may read files, but must not wait for another
// task.
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

  // Queues `task`, which must not throw.
  void submit(std::function<void()> task);
  // Runs body(i) for every i in [0, count), one task each, then waits as drain() does, also if submit() throws. body
  // must not throw. Do not call from a task of the pool: that would deadlock.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);
  // Blocks until the pool has no task left, whoever submitted it. Do not call from a task of the pool.
  void drain() noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace arbalest::engine::host
