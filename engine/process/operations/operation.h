// An Operation is one rank's part of a collective operation: a state machine that the arrival of messages moves on. It
// has no thread and no clock. All ranks start the same operations, each with a channel of its own.
#pragma once

#include <cstdint>

#include "engine/process/operations/transport.h"

namespace arbalest::engine::process {

class Operation : public Listener {
 public:
  virtual const char* name() const noexcept = 0;  // "broadcast"
  // Posts the first messages. The operation must live until it is done, or until no one polls the transport again.
  virtual void start(Transport& transport, int channel) = 0;
  virtual bool done() const noexcept = 0;
  // Returns whether the next step of this rank needs that rank, or whether messages to it have not left. A rank that
  // this one waits for indirectly does not count.
  virtual bool waits_for(int peer) const noexcept = 0;
};

// Each operation has a channel of its own. Two operations on one channel are more than 8,000 operations apart.
inline constexpr int kSignalChannel = 0;
inline constexpr int kControlChannels = 8191;    // operations on bytes and flags
inline constexpr int kAllReduceChannels = 8192;  // all-reduces; each takes two channels

constexpr int control_channel(std::uint64_t number) { return 1 + static_cast<int>(number % kControlChannels); }
constexpr int all_reduce_channel(std::uint64_t number) {
  return 1 + kControlChannels + 2 * static_cast<int>(number % kAllReduceChannels);
}

constexpr bool is_control_channel(int channel) { return channel > kSignalChannel && channel <= kControlChannels; }
constexpr bool is_all_reduce_channel(int channel) {
  return channel > kControlChannels && channel < all_reduce_channel(kAllReduceChannels - 1) + 2;
}
// Returns whether the operation of `channel` comes before that of `other`, of the same kind.
constexpr bool comes_before(int channel, int other) {
  const int channels = is_control_channel(channel) ? kControlChannels : 2 * kAllReduceChannels;
  const int distance = (other - channel + channels) % channels;
  return distance > 0 && distance < channels / 2;
}

// Messages that both ranks expect (World::send and receive) have this channel. They meet in the order of the calls.
inline constexpr int kDirectChannel = all_reduce_channel(kAllReduceChannels - 1) + 2;
// Messages to a mailbox may come at any time, so they have a channel of their own (mailbox_messages.h).
inline constexpr int kMailboxChannel = kDirectChannel + 1;
// The exchanges of a split model follow each other in the same order on all ranks, so their messages meet in order.
inline constexpr int kExchangeChannel = kMailboxChannel + 1;
static_assert(kExchangeChannel <= kMaxChannel);

// Returns whether an operation goes on beside those that all ranks start in the same order.
constexpr bool is_beside(int channel) { return channel == kDirectChannel || channel == kMailboxChannel; }

}  // namespace arbalest::engine::process
