// An immutable point in a stream's work, made by recording it. Copies are cheap and allocate nothing.
#pragma once

#include <cstdint>

namespace arbalest::engine {

class Stream;

class Event {
 public:
  // A point that has always been passed.
  Event() = default;
  // For streams only.
  Event(Stream* stream, std::uint64_t position) noexcept : stream_(stream), position_(position) {}

  Stream* stream() const noexcept { return stream_; }
  std::uint64_t position() const noexcept { return position_; }

  // True once all work before the point has ended, with or without error.
  bool is_complete() const;
  // Blocks the calling host thread until the point is passed, and throws the first error of the work before it.
  // Only the scheduler (and code that sets things up) may block so.
  void synchronize() const;

 private:
  Stream* stream_ = nullptr;  // must outlive the event
  std::uint64_t position_ = 0;
};

}  // namespace arbalest::engine
