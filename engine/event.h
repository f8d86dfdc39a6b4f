// An immutable point in a stream's work, created by recording it. Copies are cheap and allocate nothing.
#pragma once

#include <cstdint>

namespace arbalest::engine {

class Stream;

class Event {
 public:
  // An event that has always passed.
  Event() = default;
  // Called by streams only.
  Event(Stream* stream, std::uint64_t position) noexcept : stream_(stream), position_(position) {}

  Stream* stream() const noexcept { return stream_; }
  std::uint64_t position() const noexcept { return position_; }

  // Whether all work before the point has ended, with or without error.
  bool is_complete() const;
  // Blocks the calling host thread until the point has passed. Throws the first error of the work before it. For
  // engine's own use: others call engine/waiting.h.
  void synchronize() const;

 private:
  Stream* stream_ = nullptr;  // must outlive the event
  std::uint64_t position_ = 0;
};

}  // namespace arbalest::engine
