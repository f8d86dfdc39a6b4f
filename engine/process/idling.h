// Decides how long the communication thread sleeps between two looks at the transport.
#pragma once

#include <algorithm>
#include <utility>

namespace arbalest::engine::process {

// After a message the next one is probably near, so the thread tries without sleeping. Then it sleeps, each time twice
// as long. Sleeping costs latency, and waking costs CPU time that belongs to the learners.
class Idling {
 public:
  static constexpr double kTrySeconds = 20e-6;  // without a message, before the first sleep
  static constexpr double kShortestSleepSeconds = 50e-6;
  static constexpr double kLongestBusySleepSeconds = 200e-6;  // while an operation is under way
  static constexpr double kLongestSleepSeconds = 5e-3;        // while none is

  // Call this when something has happened.
  void reset(double now) noexcept {
    since_ = now;
    sleep_ = kShortestSleepSeconds;
  }

  // Returns the seconds to sleep now. 0 means that the thread looks again at once.
  double next_sleep(double now, bool is_busy) noexcept {
    if (now - since_ < kTrySeconds) return 0.0;
    const double longest = is_busy ? kLongestBusySleepSeconds : kLongestSleepSeconds;
    return std::min(longest, std::exchange(sleep_, std::min(longest, 2.0 * sleep_)));
  }

 private:
  double since_ = 0.0;
  double sleep_ = kShortestSleepSeconds;
};

}  // namespace arbalest::engine::process
