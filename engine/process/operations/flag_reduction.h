// Gives every rank the union of the flags of all ranks. With no flags it is a barrier: no rank is done before all
// have started.
#pragma once

#include <array>
#include <cstdint>

#include "engine/process/operations/bytes_transfer.h"

namespace arbalest::engine::process {

// In step s a rank sends what it knows to the rank 2^s after it. After ceil(log2(size)) steps each rank has heard from
// all.
class FlagReduction final : public Operation {
 public:
  explicit FlagReduction(std::uint64_t flags) : flags_(flags) {}

  const char* name() const noexcept override { return "barrier"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override { return step_ == steps_ && outstanding_ == 0; }
  bool waits_for(int peer) const noexcept override { return step_ < steps_ && peer == peer_behind(step_); }
  void on_message(std::uint32_t token, std::size_t bytes) override;

  std::uint64_t result() const noexcept { return flags_; }

 private:
  static constexpr int kMaxSteps = 20;
  struct Message {
    TransferHeader header = {.kind = TransferKind::kFlags};
    std::uint64_t flags = 0;
  };

  void send();
  int peer_behind(int step) const noexcept;

  Transport* transport_ = nullptr;
  int channel_ = 0;
  std::uint64_t flags_;
  int steps_ = 0;
  int step_ = 0;         // the step whose message is awaited
  int outstanding_ = 0;  // messages that are being sent
  std::array<Message, kMaxSteps> sent_;
  std::array<Message, kMaxSteps> received_;
  std::array<bool, kMaxSteps> is_here_{};
};

}  // namespace arbalest::engine::process
