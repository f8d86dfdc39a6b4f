// Ends the process after a deadline, whatever its other threads wait for. Its thread makes no call of MPI or CUDA,
// because such a call may never return when another process has died.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/process/awake_clock.h"

namespace arbalest::engine::process {

class LastExit {
 public:
  LastExit();
  ~LastExit();
  LastExit(const LastExit&) = delete;
  LastExit& operator=(const LastExit&) = delete;

  // Prints `message` to standard error and ends the process with `exit_code`, unless disarm() or another arm() comes
  // first. Time in which the process is stopped does not count.
  void arm(double seconds, int exit_code, std::string message);
  void disarm();

 private:
  void run();
  [[noreturn]] void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  AwakeClock clock_;
  std::optional<double> deadline_;  // on that clock
  int exit_code_ = 0;
  std::string message_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace arbalest::engine::process
