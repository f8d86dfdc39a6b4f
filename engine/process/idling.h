// Decides how long the communication thread sleeps between two looks at the transport.
#pragma once

#include <algorithm>
#include <utility>

namespace arbalest::engine::process {

// Sleeping costs latency, and waking costs CPU time that belongs to the learners. While an operation is under way, the
// next message is probably near, so the thread tries without sleeping. Then it sleeps, each time twice as long. While
// none is under way, nobody waits for a message, and new work wakes the thread, so it sleeps long at once.
class Idling {
 public:
  static constexpr double kTrySeconds = 20e-6;  // without a message, before the first sleep
  static constexpr double kShortestSleepSeconds = 50e-6;
  static constexpr double kLongestSleepSeconds = 200e-6;
  static constexpr double kIdleSleepSeconds = 5e-3;  // while no operation is under way

  // Call this when something has happened.
  void reset(double now) noexcept {
    since_ = now;
    sleep_ = kShortestSleepSeconds;
  }

  // Returns the seconds to sleep now. 0 means that the thread looks again at once.
  double next_sleep(double now, bool is_busy) noexcept {
    if (!is_busy) return kIdleSleepSeconds;
    if (now - since_ < kTrySeconds) return 0.0;
    return std::exchange(sleep_, std::min(kLongestSleepSeconds, 2.0 * sleep_));
  }

 private:
  double since_ = 0.0;
  double sleep_ = kShortestSleepSeconds;
};

}  // namespace arbalest::engine::process
