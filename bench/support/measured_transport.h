// The product's transport. Its sums can also be the blocking MPI_Allreduce: then the communication thread spins in MPI
// until the sum is there, and MPI is as fast as it can be.
#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/process/operations/transport.h"

namespace arbalest::bench {

class MeasuredTransport final : public engine::process::Transport {
 public:
  using Notify = engine::process::Notify;

  explicit MeasuredTransport(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  void set_blocking(bool blocking) { blocking_ = blocking; }  // while no sum is under way

  int rank() const noexcept override { return transport_->rank(); }
  int size() const noexcept override { return transport_->size(); }
  int local_rank() const noexcept override { return transport_->local_rank(); }
  int local_size() const noexcept override { return transport_->local_size(); }
  const std::string& host(int rank) const override { return transport_->host(rank); }
  void send(int peer, int channel, std::span<const std::byte> bytes, Notify notify) override {
    transport_->send(peer, channel, bytes, notify);
  }
  void receive(int peer, int channel, std::span<std::byte> bytes, Notify notify) override {
    transport_->receive(peer, channel, bytes, notify);
  }
  void all_reduce_sum(std::span<const float> from, float* to, Notify notify) override {
    if (!blocking_) return transport_->all_reduce_sum(from, to, notify);
    MPI_Allreduce(from.data(), to, static_cast<int>(from.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    ended_.push_back(notify);
  }
  bool poll() override {
    if (ended_.empty()) return transport_->poll();
    const Notify notify = ended_.front();
    ended_.pop_front();
    notify.listener->on_message(notify.token, 0);
    return true;
  }
  void close() override { transport_->close(); }
  void abort(int exit_code) noexcept override { transport_->abort(exit_code); }

 private:
  const std::unique_ptr<Transport> transport_;
  bool blocking_ = false;
  std::deque<Notify> ended_;
};

}  // namespace arbalest::bench
