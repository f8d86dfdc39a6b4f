// Brings bytes of all ranks to rank 0.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/process/operations/bytes_transfer.h"

namespace arbalest::engine::process {

class Gather final : public Operation {
 public:
  // `own` must stay valid until done(). Rank 0 calls `on_arrival` when all bytes are there.
  explicit Gather(std::string_view own, std::function<void()> on_arrival = {})
      : own_(own), on_arrival_(std::move(on_arrival)) {}

  const char* name() const noexcept override { return "gather"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override;
  bool waits_for(int peer) const noexcept override;
  void on_message(std::uint32_t, std::size_t) override {}  // the transfers have the messages

  // Returns the bytes of each rank on rank 0, and nothing on the other ranks. The caller may move them away.
  std::vector<std::string>& result() noexcept { return result_; }

 private:
  void arrived(int rank);

  const std::string_view own_;
  const std::function<void()> on_arrival_;
  bool is_root_ = false;
  int missing_ = 0;  // rank 0: ranks whose bytes are not here
  std::vector<std::string> result_;
  std::deque<IncomingBytes> incoming_;  // rank 0: of rank 1, 2, ...
  OutgoingBytes outgoing_;
};

}  // namespace arbalest::engine::process
