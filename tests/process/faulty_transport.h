// Calls a function when the n-th part of an all-reduce has arrived, so that a rank can die inside the all-reduce.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/process/operations/operation.h"
#include "engine/process/operations/transport.h"

namespace arbalest::tests {

class FaultyTransport final : public engine::process::Transport, private engine::process::Listener {
 public:
  // Part 0 never arrives.
  FaultyTransport(std::unique_ptr<engine::process::Transport> transport, int part, std::function<void()> fault)
      : transport_(std::move(transport)), part_(part), fault_(std::move(fault)) {}

  int rank() const noexcept override { return transport_->rank(); }
  int size() const noexcept override { return transport_->size(); }
  int local_rank() const noexcept override { return transport_->local_rank(); }
  int local_size() const noexcept override { return transport_->local_size(); }
  const std::string& host(int rank) const override { return transport_->host(rank); }
  void send(int peer, int channel, std::span<const std::byte> bytes, engine::process::Notify notify) override {
    transport_->send(peer, channel, bytes, notify);
  }
  void receive(int peer, int channel, std::span<std::byte> bytes, engine::process::Notify notify) override {
    if (channel <= engine::process::kControlChannels) return transport_->receive(peer, channel, bytes, notify);
    listeners_.push_back(notify);
    transport_->receive(peer, channel, bytes, {this, static_cast<std::uint32_t>(listeners_.size() - 1)});
  }
  void all_reduce_sum(std::span<const float> from, float* to, engine::process::Notify notify) override {
    transport_->all_reduce_sum(from, to, notify);
  }
  bool poll() override { return transport_->poll(); }
  void close() override { transport_->close(); }
  // Prints the exit code, because the report of mpirun may get lost.
  void abort(int exit_code) noexcept override {
    dprintf(STDERR_FILENO, "rank %d ends all processes with %d\n", rank(), exit_code);
    transport_->abort(exit_code);
  }

 private:
  void on_message(std::uint32_t token, std::size_t bytes) override {
    if (++arrived_ == part_) fault_();
    listeners_[token].listener->on_message(listeners_[token].token, bytes);
  }

  const std::unique_ptr<engine::process::Transport> transport_;
  const int part_;
  const std::function<void()> fault_;
  int arrived_ = 0;
  std::deque<engine::process::Notify> listeners_;
};

}  // namespace arbalest::tests
