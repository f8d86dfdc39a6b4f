#include "scheduler/sparse/delay_window.h"

#include <algorithm>

namespace arbalest::scheduler {

DelayWindow::DelayWindow(int workers, std::int64_t blocks, int max_delay)
    : workers_(workers),
      max_delay_(max_delay),
      end_(blocks),
      parts_(static_cast<std::size_t>(blocks), 0),
      done_(static_cast<std::size_t>(blocks), false) {}

bool DelayWindow::start(std::int64_t block) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_cancelled_ || block >= end_ || finished_ >= block - max_delay_; });
  if (is_cancelled_ || block >= end_) return false;
  begun_ = std::max(begun_, block + 1);
  return true;
}

bool DelayWindow::publish(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  return ++parts_[static_cast<std::size_t>(block)] == workers_;
}

void DelayWindow::finish(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  done_[static_cast<std::size_t>(block)] = true;
  while (finished_ < static_cast<std::int64_t>(done_.size()) && done_[static_cast<std::size_t>(finished_)]) {
    ++finished_;
  }
  changed_.notify_all();
}

void DelayWindow::stop() {
  const std::lock_guard lock(mutex_);
  end_ = std::min(end_, begun_);
  changed_.notify_all();
}

void DelayWindow::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  changed_.notify_all();
}

std::int64_t DelayWindow::wait_for_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_cancelled_ || finished_ >= end_; });
  return is_cancelled_ ? -1 : end_;
}

}  // namespace arbalest::scheduler
