// Brings bytes of each rank to each other rank. Both ranks know how many. Nothing is copied or allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/process/operations/operation.h"

namespace arbalest::engine::process {

class AllToAll final : public Operation {
 public:
  // Longer bytes are sent in pieces of `piece` bytes.
  explicit AllToAll(int ranks, std::size_t piece = kMaxMessageBytes)
      : piece_(piece), peers_(static_cast<std::size_t>(ranks)) {}

  // Sets what goes to a rank and what comes from it, for all later starts. It must stay valid, and `outgoing`
  // unchanged, from the start until done().
  void set(int peer, std::span<const std::byte> outgoing, std::span<std::byte> incoming);

  const char* name() const noexcept override { return "exchange"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override { return open_ == 0; }
  bool waits_for(int peer) const noexcept override { return peers_[static_cast<std::size_t>(peer)].open > 0; }
  void on_message(std::uint32_t token, std::size_t bytes) override;

 private:
  struct Peer {
    std::span<const std::byte> outgoing = {};
    std::span<std::byte> incoming = {};
    std::size_t missing = 0;  // messages that have not arrived
    std::size_t arrived = 0;  // bytes
    std::size_t open = 0;     // messages that have not ended
  };

  const std::size_t piece_;
  std::vector<Peer> peers_;
  int rank_ = 0;
  std::size_t open_ = 0;
};

}  // namespace arbalest::engine::process
