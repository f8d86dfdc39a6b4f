// Ends the process after a deadline, whatever its other threads wait for. Its thread makes no call of MPI or CUDA,
// which may never return when another process has died.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace arbalest::engine::process {

class LastExit {
 public:
  LastExit();
  ~LastExit();
  LastExit(const LastExit&) = delete;
  LastExit& operator=(const LastExit&) = delete;

  // Prints `message` to standard error and ends the process with `exit_code`, unless disarm() or another arm() comes
  // first.
  void arm(double seconds, int exit_code, std::string message);
  void disarm();

 private:
  using Clock = std::chrono::steady_clock;

  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point deadline_ = Clock::time_point::max();
  int exit_code_ = 0;
  std::string message_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace arbalest::engine::process
