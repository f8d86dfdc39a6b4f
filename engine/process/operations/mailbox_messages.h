// A message to a mailbox is bytes that a rank sends to another one at any time, beside everything else that the ranks
// do. Messages arrive in the order in which they were sent. An empty message is the last one of a rank.
//
// Nobody but the receiver knows when a message is due. So a receiver that cannot go on without one says so
// (MailboxWait).
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "engine/process/operations/bytes_transfer.h"

namespace arbalest::engine::process {

class MailboxSend final : public Operation {
 public:
  MailboxSend(std::string bytes, int to) : bytes_(std::move(bytes)), to_(to) {}

  const char* name() const noexcept override { return "message"; }
  void start(Transport& transport, int channel) override {
    outgoing_.start(transport, to_, channel, TransferKind::kMailbox, bytes_);
  }
  bool done() const noexcept override { return outgoing_.done(); }
  bool waits_for(int) const noexcept override { return false; }
  void on_message(std::uint32_t, std::size_t) override {}  // the transfer has the messages

 private:
  const std::string bytes_;
  const int to_;
  OutgoingBytes outgoing_;
};

// A rank cannot go on without a message of another one, which is late if it does not wait for anything itself.
class MailboxWait final : public Operation {
 public:
  explicit MailboxWait(int peer) : peer_(peer) {}

  int peer() const noexcept { return peer_; }
  // Any thread may call it.
  void end() noexcept { is_over_ = true; }

  const char* name() const noexcept override { return "messages"; }
  void start(Transport&, int) override {}
  bool done() const noexcept override { return is_over_; }
  bool waits_for(int peer) const noexcept override { return peer == peer_; }
  void on_message(std::uint32_t, std::size_t) override {}

 private:
  const int peer_;
  std::atomic<bool> is_over_{false};
};

// Receives the messages of all other ranks, until each of them has sent its last one.
class MailboxReceipt final : public Operation {
 public:
  using Take = std::function<void(int from, std::string bytes)>;

  // `take` gets each message but the empty ones.
  explicit MailboxReceipt(Take take) : take_(std::move(take)) {}

  const char* name() const noexcept override { return "messages"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override { return has_started_ && missing_ == 0; }
  bool waits_for(int) const noexcept override { return false; }
  void on_message(std::uint32_t, std::size_t) override {}

 private:
  void arrived(int from, IncomingBytes& incoming);

  const Take take_;
  bool has_started_ = false;
  int missing_ = 0;  // ranks whose last message has not come
  std::deque<IncomingBytes> incoming_;
};

}  // namespace arbalest::engine::process
