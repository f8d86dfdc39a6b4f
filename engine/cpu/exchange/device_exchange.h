// Exchanges between CPU devices. Each rank shows its tensor, waits for the others of its process, reads what it needs
// of theirs, and waits again before anybody changes a tensor that was shown. The pieces of other processes come in
// messages (process_pieces.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/cpu/device/meeting.h"
#include "engine/cpu/exchange/process_pieces.h"
#include "engine/cpu/exchange/tensor_pieces.h"
#include "engine/ops/exchange_group.h"

namespace arbalest::engine::cpu {

// A tensor that a rank shows to the others. Ranks whose sizes differ have lost their common order.
struct ShownTensor {
  const float* values = nullptr;
  ExchangeSizes sizes = {};
};

class DeviceExchange final : public ExchangeGroup {
 public:
  // `devices[p]`: number of devices of process p of `world`, which must outlive it.
  DeviceExchange(std::vector<int> devices, process::World& world);

  int ranks() const noexcept override { return ranks_; }
  void break_up() noexcept override { meeting_.break_up(); }
  std::size_t host_bytes() const noexcept override { return elsewhere_ ? elsewhere_->bytes() : 0; }
  std::uint64_t received_bytes(int rank) const noexcept override {
    return received_[local(rank)].load(std::memory_order_relaxed);
  }

  // Makes room for an exchange. No exchange may be under way.
  void reserve(const ExchangeSizes& sizes);

  // Calls read(piece of each rank), in order of ranks. Blocks the calling thread until all ranks have called
  // exchange(), and until all ranks of this process have read.
  template <typename Read>
  void exchange(int rank, const ShownTensor& own, int threads, const Read& read) {
    read(meet(local(rank), own, threads));
    received_[local(rank)].fetch_add(
        static_cast<std::uint64_t>(own.sizes.piece_floats() * (ranks_ - 1)) * sizeof(float), std::memory_order_relaxed);
    meeting_.arrive_and_wait();
  }

 private:
  std::size_t local(int rank) const { return static_cast<std::size_t>(rank - first_); }
  // Returns the pieces once all ranks have shown their tensors.
  std::span<const Piece> meet(std::size_t device, const ShownTensor& own, int threads);

  int ranks_ = 0;
  int first_ = 0;
  Meeting meeting_;                         // of this process
  std::vector<ShownTensor> shown_;          // by device of this process
  std::vector<std::vector<Piece>> pieces_;  // [device of this process][rank]
  std::vector<std::atomic<std::uint64_t>> received_;
  std::unique_ptr<ProcessPieces> elsewhere_;  // null: there is one process
};

}  // namespace arbalest::engine::cpu
