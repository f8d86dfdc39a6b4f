// Sends any number of bytes from one rank to another: a header, then pieces of at most kMaxMessageBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/process/operations/operation.h"

namespace arbalest::engine::process {

enum class TransferKind : std::uint32_t { kBroadcast = 1, kGather = 2, kFlags = 3, kDirect = 4, kMailbox = 5 };

// The header tells to which operation a message belongs, so that processes which have lost step are noticed.
struct TransferHeader {
  std::uint32_t magic = 0x6172'6231;  // another byte order or another version reads another number
  TransferKind kind = TransferKind::kBroadcast;
  std::uint64_t bytes = 0;
};

// Throws kPeer with the rank of the sender if the header is not one of `kind`, or has another size.
void check_header(const TransferHeader& header, std::size_t bytes, TransferKind kind, int peer,
                  const Transport& transport);

class OutgoingBytes final : public Listener {
 public:
  // `payload` must stay valid and unchanged until done().
  void start(Transport& transport, int peer, int channel, TransferKind kind, std::string_view payload);
  bool done() const noexcept { return outstanding_ == 0; }
  bool waits_for(int peer) const noexcept { return !done() && peer == peer_; }

  void on_message(std::uint32_t token, std::size_t bytes) override;

 private:
  int peer_ = -1;
  TransferHeader header_;
  std::size_t outstanding_ = 0;
};

class IncomingBytes final : public Listener {
 public:
  // `on_arrival` is called when the payload is complete.
  void start(Transport& transport, int peer, int channel, TransferKind kind, std::function<void()> on_arrival);
  // Receives again from the same rank on the same channel. `on_arrival` may call it, as the last thing that it does.
  void receive_next();
  bool done() const noexcept { return done_; }
  std::string& payload() noexcept { return payload_; }

  void on_message(std::uint32_t token, std::size_t bytes) override;

 private:
  void finish();

  Transport* transport_ = nullptr;
  int peer_ = 0;
  int channel_ = 0;
  TransferKind kind_ = TransferKind::kBroadcast;
  std::function<void()> on_arrival_;
  TransferHeader header_;
  std::string payload_;
  std::size_t outstanding_ = 0;
  bool done_ = false;
};

}  // namespace arbalest::engine::process
