#include "engine/host/pool.h"

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/host/arena.h"
#include "engine/host/thread_sanitizer.h"

namespace arbalest::engine::host {

// Tasks wait in our own queue. oneTBB only gets "runners", each of which empties the queue, so that a burst of tasks
// wakes a worker once. One mutex makes a submitter's writes visible to its task.
struct Pool::Impl {
  explicit Impl(int threads) : limit(threads), arena(threads) {}

  void push(std::function<void()> task);
  std::function<void()> pop();
  void run() noexcept;

  const int limit;
  std::mutex mutex;
  std::condition_variable idle;
  int runners = 0;  // runners that are enqueued or running; at least one while there are tasks
  std::vector<std::function<void()>> queue{16};  // a ring that doubles when full: no allocation in steady state
  std::size_t head = 0;
  std::size_t waiting = 0;
  Arena arena;
};

void Pool::Impl::push(std::function<void()> task) {
  if (waiting == queue.size()) {
    std::vector<std::function<void()>> larger(queue.size() * 2);
    for (std::size_t i = 0; i < waiting; ++i) larger[i] = std::move(queue[(head + i) % queue.size()]);
    queue = std::move(larger);
    head = 0;
  }
  queue[(head + waiting) % queue.size()] = std::move(task);
  ++waiting;
}

std::function<void()> Pool::Impl::pop() {
  std::function<void()> task = std::exchange(queue[head], nullptr);
  head = (head + 1) % queue.size();
  --waiting;
  return task;
}

void Pool::Impl::run() noexcept {
  std::unique_lock lock(mutex);
  while (waiting > 0) {
    std::function<void()> task = pop();
    lock.unlock();
    task();
    task = nullptr;  // so that the task's captures are destroyed before drain() returns
    lock.lock();
  }
  if (--runners == 0) idle.notify_all();
}

Pool::Pool(int threads) {
  ARBALEST_CHECK(threads > 0);
  impl_ = std::make_unique<Impl>(threads);
}

Pool::~Pool() { drain(); }

void Pool::submit(std::function<void()> task) {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->runners < impl_->limit) {
    publish_to_sanitizer(impl_.get());  // tells the sanitizer that a worker gets the object through oneTBB
    impl_->arena.enqueue(
        [](void* impl) noexcept {
          receive_from_sanitizer(impl);
          static_cast<Impl*>(impl)->run();
        },
        impl_.get());
    ++impl_->runners;
  }
  impl_->push(std::move(task));  // if this throws, the runner finds nothing and ends
}

void Pool::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  struct DrainAtEnd {
    Pool& pool;
    ~DrainAtEnd() { pool.drain(); }
  };
  const DrainAtEnd drain_at_end{*this};
  for (std::size_t i = 0; i < count; ++i) submit([&body, i] { body(i); });
}

void Pool::drain() noexcept {
  std::unique_lock lock(impl_->mutex);
  impl_->idle.wait(lock, [this] { return impl_->runners == 0; });
}

}  // namespace arbalest::engine::host
