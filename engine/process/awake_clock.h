// This clock stands still while the process is stopped, as by Ctrl-Z or by a batch system that suspends its job.
#pragma once

#include <algorithm>
#include <chrono>

namespace arbalest::engine::process {

// Seconds of the steady clock, from any start.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A process that has not run for longer than this was stopped.
inline constexpr double kLongestPause = 1.0;

class AwakeClock {
 public:
  explicit AwakeClock(double now) : now_(now) {}

  // Sets the clock to `now`, in seconds from any start. Must be called more often than once per kLongestPause to
  // measure a time.
  void advance(double now) noexcept {
    seconds_ += std::min(now - now_, kLongestPause);
    now_ = now;
  }
  // Returns the seconds since the construction in which the process was not stopped.
  double seconds() const noexcept { return seconds_; }

 private:
  double now_;
  double seconds_ = 0.0;
};

}  // namespace arbalest::engine::process
