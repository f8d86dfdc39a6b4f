// Decides how long the communication thread sleeps between two looks at the transport.
#pragma once

#include <algorithm>
#include <utility>

namespace arbalest::engine::process {

// Sleeping costs latency, and waking costs CPU time that belongs to the learners. While an operation is under way, the
// next message is probably near, so the thread tries without sleeping. Then it sleeps, each time twice as long, and in
// a long wait in proportion to it: a message is then late by a small part of the time that it took. While none is under
// way, nobody waits for a message, and new work wakes the thread, so it sleeps long at once.
class Idling {
 public:
  static constexpr double kTrySeconds = 20e-6;  // without a message, before the first sleep
  static constexpr double kShortestSleepSeconds = 50e-6;
  static constexpr double kDoublingEndsSeconds = 200e-6;
  static constexpr double kPartOfWait = 1.0 / 32.0;
  static constexpr double kIdleSleepSeconds = 5e-3;  // while no operation is under way; no sleep is longer

  // Call this when something has happened.
  void reset(double now) noexcept {
    since_ = now;
    sleep_ = kShortestSleepSeconds;
  }

  // Returns the seconds to sleep now. 0 means that the thread looks again at once.
  double next_sleep(double now, bool is_busy) noexcept {
    if (!is_busy) return kIdleSleepSeconds;
    const double waited = now - since_;
    if (waited < kTrySeconds) return 0.0;
    const double longest = std::clamp(kPartOfWait * waited, kDoublingEndsSeconds, kIdleSleepSeconds);
    return std::exchange(sleep_, std::min(longest, 2.0 * sleep_));
  }

 private:
  double since_ = 0.0;
  double sleep_ = kShortestSleepSeconds;
};

}  // namespace arbalest::engine::process
