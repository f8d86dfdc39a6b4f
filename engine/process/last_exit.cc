#include "engine/process/last_exit.h"

#include <poll.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "engine/error.h"

namespace arbalest::engine::process {

LastExit::LastExit() {
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
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    exit_code_ = exit_code;
    message_ = "arbalest: error: " + std::move(message) + "\n";
  }
  changed_.notify_one();
}

void LastExit::disarm() {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = Clock::time_point::max();
  }
  changed_.notify_one();
}

void LastExit::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (deadline_ == Clock::time_point::max()) {
      changed_.wait(lock);
    } else if (Clock::now() < deadline_) {
      const Clock::time_point deadline = deadline_;  // arm() may change it during the wait
      changed_.wait_until(lock, deadline);
    } else {
      // The process ends anyway if its standard error is gone, or if it is a pipe that nobody reads.
      pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      const bool is_writable = poll(&file, 1, 0) == 1 && (file.revents & POLLOUT) != 0;
      if (is_writable) static_cast<void>(write(STDERR_FILENO, message_.data(), message_.size()) == 0);
      _exit(exit_code_);
    }
  }
}

}  // namespace arbalest::engine::process
