// Tells a host thread which of several streams has come first to a point in its work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/event.h"

namespace arbalest::engine {

// Stream::report adds a value once a stream has come to a point, and take() returns the values in the order in which
// that happened. CPU streams add their values themselves, and take() sleeps until one does. The points of other streams
// are watched: take() asks for them at short intervals.
class Completions {
 public:
  // Adds `value`. Called on any thread.
  void add(std::uint64_t value);
  // Adds `value` once `event` has passed.
  void watch(const Event& event, std::uint64_t value);

  // Returns the oldest value, and blocks the host until there is one. Some report must be under way.
  std::uint64_t take();
  // Takes a value like take(), but returns none after `seconds` without one.
  std::optional<std::uint64_t> take_within(double seconds);
  // Forgets all values and watched events. No stream may still report.
  void forget();

 private:
  struct Watched {
    Event event;
    std::uint64_t value = 0;
  };

  void collect_passed();
  std::uint64_t pop();

  std::mutex mutex_;
  std::condition_variable added_;
  std::vector<std::uint64_t> values_;  // oldest first
  std::vector<Watched> watched_;
};

}  // namespace arbalest::engine
