// Sums a vector over all ranks by a reduce-scatter and an all-gather. Each rank sends its part of slice r to rank r,
// which adds the parts in the order of the pairwise tree over ranks (engine/passes/averaging.h) and sends the sum to
// all. So the bits depend neither on the length of a chunk nor on the order in which messages arrive. With N elements
// and P ranks each rank sends and receives 2 N (P - 1) / P floats.
//
// Chunks go through a window: while one is added, the next are under way, and received parts stay in the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/process/operations/operation.h"
#include "engine/process/operations/slices.h"

namespace arbalest::engine::process {

struct AllReduceOptions {
  std::size_t chunk = std::size_t{1} << 16;  // floats of a message: 256 KiB
  std::size_t window = 4;                    // chunks under way from each rank; at most 32
};

// With many ranks, chunks are shorter than AllReduceOptions::chunk, so that a rank's buffers for received parts stay
// below kMostReceived floats (16 MiB). A chunk has at least kShortestChunk floats.
inline constexpr std::size_t kMostReceived = std::size_t{1} << 22;
inline constexpr std::size_t kShortestChunk = 1024;
std::size_t chunk_for(int ranks, const AllReduceOptions& options);

class AllReduce final : public Operation {
 public:
  // Allocates room for the parts that are received at a time: about one vector's length, but with up to 1,000 ranks not
  // more than kMostReceived. May be started again when it is done, without further allocations. `values` holds the
  // addends at the start, must not be touched until done(), and holds the sum then.
  AllReduce(std::span<float> values, int rank, int ranks, const AllReduceOptions& options = {});

  const char* name() const noexcept override { return "all-reduce"; }
  void start(Transport& transport, int channel) override;
  bool done() const noexcept override { return open_ == 0; }
  bool waits_for(int peer) const noexcept override;
  void on_message(std::uint32_t token, std::size_t bytes) override;

 private:
  enum Kind : std::uint32_t { kPartSent, kPartArrived, kSumSent, kSumArrived };

  // This is the state of the exchange with one other rank. Parts of its slice go there; then their sums come back.
  struct Peer {
    std::size_t begun = 0;        // parts posted
    std::size_t finished = 0;     // parts sent, up to the first that is not; the sums behind them are awaited
    std::uint32_t sent_mask = 0;  // parts sent after that, by place in the window
    std::uint32_t here_mask = 0;  // its parts of the own slice that are here and not added, by place in the window
    std::size_t sums = 0;         // sums of its slice that are here
    std::size_t sum_bytes = 0;    // bytes of those sums
    std::size_t open = 0;         // messages that have not ended, including those not yet posted
  };

  Notify notify(Kind kind, int peer, std::size_t chunk);
  std::span<float> chunk_of(int rank, std::size_t chunk) const;
  float* received(int peer, std::size_t chunk);
  void send_parts(int peer);
  void receive_parts(std::size_t chunk);
  void part_sent(int peer, std::size_t place);
  void part_arrived(int peer, std::size_t place, std::size_t bytes);
  void sum_arrived(int peer, std::size_t bytes);
  void add(std::size_t chunk);
  void send_sum(std::size_t chunk);

  const std::span<float> values_;
  const int rank_;
  const int ranks_;
  const AllReduceOptions options_;
  const Slices slices_;
  const std::size_t buffer_size_;      // floats of a received part
  const std::size_t places_;           // parts from each rank that are received at a time
  std::vector<float> buffers_;         // [ranks - 1][places][buffer_size]
  std::vector<const float*> addends_;  // [ranks], for one chunk
  Transport* transport_ = nullptr;
  int channel_ = 0;  // of the parts; their sums use the next one
  std::vector<Peer> peers_;
  std::vector<int> arrived_;  // [window]: parts of a chunk of the own slice that are here
  std::size_t added_ = 0;     // chunks of the own slice that have their sum
  std::size_t open_ = 0;      // messages that have not ended, including those not yet posted
};

}  // namespace arbalest::engine::process
