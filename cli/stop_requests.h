// Tells a repeated request for a stop from a second one.
#pragma once

#include <atomic>
#include <cstdint>

namespace arbalest::cli {

enum class StopRequest {
  kFirst,
  kSame,   // the first one once more: `timeout` sends a signal to its child, and again to its group
  kSecond  // the user does not want to wait for the answer to the first one
};

// note() may be called by signal handlers, on several threads at once.
class StopRequests {
 public:
  static constexpr std::int64_t kSameNanoseconds = 200'000'000;

  // `nanoseconds`: the time on a clock that never goes back.
  StopRequest note(int signal, std::int64_t nanoseconds) noexcept {
    // The time comes first, so that whoever finds a signal finds its time, too.
    std::int64_t unset = kUnset;
    first_at_.compare_exchange_strong(unset, nanoseconds);
    int first = 0;
    if (first_.compare_exchange_strong(first, signal)) return StopRequest::kFirst;
    const bool is_soon = nanoseconds - first_at_.load() < kSameNanoseconds;
    return signal == first && is_soon ? StopRequest::kSame : StopRequest::kSecond;
  }

  // The number of the first signal; 0 before it.
  const std::atomic<int>& signal() const noexcept { return first_; }

 private:
  static constexpr std::int64_t kUnset = -1;
  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

  std::atomic<int> first_{0};
  std::atomic<std::int64_t> first_at_{kUnset};
};

}  // namespace arbalest::cli
