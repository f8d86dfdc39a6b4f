// Brings bytes of one rank to all ranks, along a binomial tree.
#pragma once

#include <deque>
#include <string>

#include "engine/process/operations/bytes_transfer.h"

namespace arbalest::engine::process {

class Broadcast final : public Operation {
 public:
  // The root sends `bytes`. The other ranks overwrite their `bytes` with the ones that they receive.
  Broadcast(std::string& bytes, int root) : bytes_(bytes), root_(root) {}

  const char* name() const noexcept override { return "broadcast"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override;
  bool waits_for(int peer) const noexcept override;
  void on_message(std::uint32_t, std::size_t) override {}  // the transfers have the messages

 private:
  void send_to_children();

  std::string& bytes_;
  const int root_;
  Transport* transport_ = nullptr;
  int channel_ = 0;
  int parent_ = -1;
  bool has_bytes_ = false;
  IncomingBytes from_parent_;
  std::deque<OutgoingBytes> to_children_;
};

}  // namespace arbalest::engine::process
