// Bring bytes of one rank to one other rank, while the other ranks do something else.
//
// No rank is blamed for being late here, because the receiver may first have much to do for others. A rank that dies is
// noticed by its silence.
#pragma once

#include <string>
#include <string_view>

#include "engine/process/operations/bytes_transfer.h"

namespace arbalest::engine::process {

class DirectSend final : public Operation {
 public:
  // `bytes` must stay valid until done().
  DirectSend(std::string_view bytes, int to) : bytes_(bytes), to_(to) {}

  const char* name() const noexcept override { return "send"; }
  void start(Transport& transport, int channel) override {
    outgoing_.start(transport, to_, channel, TransferKind::kDirect, bytes_);
  }
  bool done() const noexcept override { return outgoing_.done(); }
  bool waits_for(int) const noexcept override { return false; }
  void on_message(std::uint32_t, std::size_t) override {}  // the transfer has the messages

 private:
  const std::string_view bytes_;
  const int to_;
  OutgoingBytes outgoing_;
};

class DirectReceive final : public Operation {
 public:
  explicit DirectReceive(int from) : from_(from) {}

  const char* name() const noexcept override { return "receive"; }
  void start(Transport& transport, int channel) override {
    incoming_.start(transport, from_, channel, TransferKind::kDirect, {});
  }
  bool done() const noexcept override { return incoming_.done(); }
  bool waits_for(int) const noexcept override { return false; }
  void on_message(std::uint32_t, std::size_t) override {}

  // Returns the received bytes. The caller may move them away.
  std::string& result() noexcept { return incoming_.payload(); }

 private:
  const int from_;
  IncomingBytes incoming_;
};

}  // namespace arbalest::engine::process
