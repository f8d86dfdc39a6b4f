// A Transport exchanges messages with the other processes. One thread owns a transport and makes all calls. No call
// blocks, except where a function says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include "engine/base/error.h"

namespace arbalest::engine::process {

// A Listener is told that a message has been sent or has arrived.
class Listener {
 public:
  virtual ~Listener() = default;
  // `token` is the number that the listener gave with the message, and `bytes` is the size of the message. The function
  // may post further messages. It throws Error if the message is not what it must be.
  virtual void on_message(std::uint32_t token, std::size_t bytes) = 0;
};

struct Notify {
  Listener* listener = nullptr;
  std::uint32_t token = 0;
};

// This error says that a message to or from another rank has failed.
class ConnectionError final : public Error {
 public:
  ConnectionError(int peer, const std::string& what) : Error(ErrorKind::kPeer, what), peer_(peer) {}

  int peer() const noexcept { return peer_; }

 private:
  int peer_;
};

// A longer message is sent in pieces.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  // These are the number of this process among those of its host, and their number.
  virtual int local_rank() const noexcept = 0;
  virtual int local_size() const noexcept = 0;
  virtual const std::string& host(int rank) const = 0;

  // These post a message to or from another rank. A message meets the receives of the same channel in the order in
  // which both were posted. The bytes must stay valid, and sent bytes unchanged, until poll() calls the listener. A
  // receive may be longer than its message. Both throw ConnectionError, or another Error of kind kPeer.
  //   channel: 0 to kMaxChannel
  //   bytes: at most kMaxMessageBytes
  virtual void send(int peer, int channel, std::span<const std::byte> bytes, Notify notify) = 0;
  virtual void receive(int peer, int channel, std::span<std::byte> bytes, Notify notify) = 0;

  // Sums vectors over all ranks by the library's own algorithm, in an order of additions that the library chooses. All
  // ranks must start these sums in the same order. The vectors must not overlap. Throws kInternal if there is none.
  virtual void all_reduce_sum(std::span<const float> from, float* to, Notify notify) = 0;

  // Calls the listeners of messages that have ended. Returns whether there were any. Throws like send(). After an
  // error, of a message or of a listener, the next call goes on with the other messages.
  virtual bool poll() = 0;

  // Ends the communication, once all messages have ended on all ranks. May block until every rank has called it.
  virtual void close() = 0;
  // Ends all processes. Does not return if the library can do it.
  virtual void abort(int exit_code) noexcept = 0;
};

// Names a rank in messages: "rank 2 on host b".
inline std::string place_of(int rank, const std::string& host) { return fmt::format("rank {} on host {}", rank, host); }
inline std::string place_of(const Transport& transport, int rank) { return place_of(rank, transport.host(rank)); }

// MPI libraries may forbid greater tags.
inline constexpr int kMaxChannel = 32767;

}  // namespace arbalest::engine::process
