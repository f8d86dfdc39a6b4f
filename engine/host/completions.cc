#include "engine/host/completions.h"

#include <algorithm>
#include <chrono>

#include "engine/stream.h"

namespace arbalest::engine {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kNap = std::chrono::microseconds(20);

}  // namespace

// A stream that its device cannot interrupt is watched.
void Stream::report(Completions& to, std::uint64_t value) { to.watch(record(), value); }

void Completions::add(std::uint64_t value) {
  // The notification is sent under the lock: as soon as take() has returned, its caller may destroy the object.
  const std::lock_guard lock(mutex_);
  values_.push_back(value);
  added_.notify_one();
}

void Completions::watch(const Event& event, std::uint64_t value) {
  const std::lock_guard lock(mutex_);
  watched_.push_back({event, value});
}

void Completions::collect_passed() {
  std::erase_if(watched_, [this](const Watched& watched) {
    if (!watched.event.is_complete()) return false;
    values_.push_back(watched.value);
    return true;
  });
}

std::uint64_t Completions::take() {
  std::unique_lock lock(mutex_);
  collect_passed();
  while (values_.empty()) {
    if (watched_.empty()) {
      added_.wait(lock);
    } else {
      added_.wait_for(lock, kNap);
      collect_passed();
    }
  }
  return pop();
}

std::optional<std::uint64_t> Completions::take_within(double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::unique_lock lock(mutex_);
  collect_passed();
  while (values_.empty()) {
    const Clock::time_point now = Clock::now();
    if (now >= end) return std::nullopt;
    added_.wait_until(lock, watched_.empty() ? end : std::min(end, now + kNap));
    collect_passed();
  }
  return pop();
}

std::uint64_t Completions::pop() {
  const std::uint64_t value = values_.front();
  values_.erase(values_.begin());
  return value;
}

void Completions::forget() {
  const std::lock_guard lock(mutex_);
  values_.clear();
  watched_.clear();
}

}  // namespace arbalest::engine
