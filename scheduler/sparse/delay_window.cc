#include "scheduler/sparse/delay_window.h"

#include <algorithm>

namespace arbalest::scheduler {

DelayWindow::DelayWindow(int workers, std::int64_t blocks, int max_delay, int processes)
    : workers_(workers),
      processes_(processes),
      max_delay_(max_delay),
      end_(blocks),
      parts_(static_cast<std::size_t>(blocks)) {}

bool DelayWindow::start(std::int64_t block) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_cancelled_ || block >= end_ || finished_ >= block - max_delay_; });
  return !is_cancelled_ && block < end_;
}

bool DelayWindow::publish(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  return ++parts_[static_cast<std::size_t>(block)].workers == workers_;
}

bool DelayWindow::arrive(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  return ++parts_[static_cast<std::size_t>(block)].processes == processes_;
}

void DelayWindow::finish(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  parts_[static_cast<std::size_t>(block)].is_done = true;
  while (finished_ < static_cast<std::int64_t>(parts_.size()) && parts_[static_cast<std::size_t>(finished_)].is_done) {
    ++finished_;
  }
  changed_.notify_all();
}

void DelayWindow::stop_after(std::int64_t block) {
  const std::lock_guard lock(mutex_);
  end_ = std::min(end_, block + max_delay_ + 1);
  changed_.notify_all();
}

void DelayWindow::cancel() {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  changed_.notify_all();
}

std::int64_t DelayWindow::finished() {
  const std::lock_guard lock(mutex_);
  return finished_;
}

bool DelayWindow::is_over() {
  const std::lock_guard lock(mutex_);
  return is_cancelled_ || finished_ >= end_;
}

std::int64_t DelayWindow::wait_for_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_cancelled_ || finished_ >= end_; });
  return is_cancelled_ ? -1 : end_;
}

}  // namespace arbalest::scheduler
