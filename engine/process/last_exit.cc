#include "engine/process/last_exit.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "engine/base/error.h"

namespace arbalest::engine::process {

LastExit::LastExit() : clock_(seconds_now()) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    fail(ErrorKind::kOutOfMemory,
         "cannot start the thread that ends the process: {}; look at 'ulimit -u' and at pids.max",
         error.code().message());
  }
}

LastExit::~LastExit() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LastExit::arm(double seconds, int exit_code, std::string message) {
  {
    const std::lock_guard lock(mutex_);
    clock_.advance(seconds_now());
    deadline_ = clock_.seconds() + seconds;
    exit_code_ = exit_code;
    message_ = "arbalest: error: " + std::move(message) + "\n";
  }
  changed_.notify_one();
}

void LastExit::disarm() {
  {
    const std::lock_guard lock(mutex_);
    deadline_.reset();
  }
  changed_.notify_one();
}

void LastExit::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (!deadline_) {
      changed_.wait(lock);
      continue;
    }
    clock_.advance(seconds_now());
    const double left = *deadline_ - clock_.seconds();
    if (left <= 0.0) end();
    changed_.wait_for(lock, std::chrono::duration<double>(std::min(left, 0.5 * kLongestPause)));
  }
}

// The process ends even if its standard error is closed, or is a pipe that nobody reads.
void LastExit::end() {
  pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  const bool is_writable = poll(&file, 1, 0) == 1 && (file.revents & POLLOUT) != 0;
  if (is_writable) static_cast<void>(write(STDERR_FILENO, message_.data(), message_.size()) == 0);
  _exit(exit_code_);
}

}  // namespace arbalest::engine::process
