// The pieces of tensors that go from the devices of one process to those of another. A message to a process has the
// pieces of all devices here for all devices there, so an exchange takes one message for each pair of processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/cpu/exchange/tensor_pieces.h"
#include "engine/process/operations/all_to_all.h"
#include "engine/process/world.h"

namespace arbalest::engine::cpu {

class ProcessPieces {
 public:
  // `devices[p]`: number of devices of process p.
  ProcessPieces(std::vector<int> devices, process::World& world);

  // Makes room for an exchange, so that those that follow allocate nothing.
  void reserve(const ExchangeSizes& sizes);
  std::size_t bytes() const noexcept;  // of all messages
  // Copies the pieces of a device's tensor to the messages. The devices of this process may call it at once.
  void pack(std::size_t device, const float* values, const ExchangeSizes& sizes, int threads);
  // Exchanges the messages, once all devices have packed theirs. Throws kPeer as World's operations do, and if another
  // process is in another exchange.
  void exchange(const ExchangeSizes& sizes);
  // Sets `pieces[r]`, by rank, of all other processes for a device of this one.
  void get(std::size_t device, const ExchangeSizes& sizes, std::span<Piece> pieces) const;

 private:
  // Begins each message: the exchange's number, kind, examples and columns. Processes whose headers differ have lost
  // their common order.
  using Header = std::array<std::int64_t, 4>;
  static constexpr std::int64_t kHeaderFloats = 16;  // a cache line
  static_assert(sizeof(Header) <= kHeaderFloats * sizeof(float));

  struct Process {
    std::int64_t first = 0;  // rank of its first device
    std::int64_t devices = 0;
    std::vector<float> outgoing = {};
    std::vector<float> incoming = {};
  };

  const Process& own() const { return processes_[own_]; }
  // The place in a message of the piece that `reader` reads of `shown`, which are numbers of devices in their
  // processes.
  static std::int64_t offset(const ExchangeSizes& sizes, std::int64_t shown, std::int64_t reader,
                             std::int64_t readers) {
    return kHeaderFloats + (sizes.is_shared() ? shown : shown * readers + reader) * sizes.piece_floats();
  }
  static std::int64_t message_floats(const ExchangeSizes& sizes, std::int64_t shown, std::int64_t readers) {
    return kHeaderFloats + shown * (sizes.is_shared() ? 1 : readers) * sizes.piece_floats();
  }

  process::World& world_;
  const std::size_t own_;
  std::vector<Process> processes_;
  process::AllToAll operation_;
  std::int64_t exchanges_ = 0;
};

}  // namespace arbalest::engine::cpu
