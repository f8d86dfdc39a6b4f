#include "engine/process/operations/all_reduce.h"

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "engine/cpu/passes/pairwise_blocks.h"

namespace arbalest::engine::process {

namespace {

// A token holds the kind of a message, the other rank, and the place of the chunk in the window.
constexpr std::uint32_t kPlaceBits = 5;
constexpr std::uint32_t kPeerBits = 24;

[[noreturn]] void fail_lengths(int rank, int peer) {
  fail(ErrorKind::kPeer, "internal error: ranks {} and {} sum vectors of different lengths; please report this", rank,
       peer);
}

}  // namespace

std::size_t chunk_for(int ranks, const AllReduceOptions& options) {
  const std::size_t parts = static_cast<std::size_t>(std::max(ranks - 1, 1)) * std::max(options.window, std::size_t{1});
  return std::min(options.chunk, std::max(kShortestChunk, kMostReceived / parts));
}

AllReduce::AllReduce(std::span<float> values, int rank, int ranks, const AllReduceOptions& options)
    : values_(values),
      rank_(rank),
      ranks_(ranks),
      options_(options),
      slices_(values.size(), ranks, chunk_for(ranks, options)),
      buffer_size_(std::min(chunk_for(ranks, options), slices_.size(rank))),
      places_(std::min(options.window, slices_.chunks(rank))),
      buffers_(static_cast<std::size_t>(ranks - 1) * places_ * buffer_size_),
      addends_(static_cast<std::size_t>(ranks)),
      peers_(static_cast<std::size_t>(ranks)),
      arrived_(options.window) {
  ARBALEST_CHECK(options.window >= 1 && options.window <= std::size_t{1} << kPlaceBits);
  ARBALEST_CHECK(options.chunk >= 1 && options.chunk * sizeof(float) <= kMaxMessageBytes);
}

void AllReduce::start(Transport& transport, int channel) {
  ARBALEST_CHECK(open_ == 0);
  transport_ = &transport;
  channel_ = channel;
  std::ranges::fill(peers_, Peer{});
  std::ranges::fill(arrived_, 0);
  added_ = 0;
  const std::size_t own = slices_.chunks(rank_);
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    peers_[static_cast<std::size_t>(peer)].open = 2 * own + 2 * slices_.chunks(peer);
    open_ += 2 * own + 2 * slices_.chunks(peer);
  }
  for (std::size_t chunk = 0; chunk < std::min(own, options_.window); ++chunk) receive_parts(chunk);
  // Each rank begins with the slice behind its own, so that no rank gets the first parts of all.
  for (int step = 1; step < ranks_; ++step) send_parts((rank_ + step) % ranks_);
}

Notify AllReduce::notify(Kind kind, int peer, std::size_t chunk) {
  const auto place = static_cast<std::uint32_t>(chunk % options_.window);
  return {this, ((kind << kPeerBits) | static_cast<std::uint32_t>(peer)) << kPlaceBits | place};
}

std::span<float> AllReduce::chunk_of(int rank, std::size_t chunk) const {
  return values_.subspan(slices_.chunk_begin(rank, chunk), slices_.chunk_size(rank, chunk));
}

float* AllReduce::received(int peer, std::size_t chunk) {
  const auto row = static_cast<std::size_t>(peer < rank_ ? peer : peer - 1);
  return buffers_.data() + (row * places_ + chunk % options_.window) * buffer_size_;
}

void AllReduce::send_parts(int peer) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  const std::size_t end = std::min(slices_.chunks(peer), state.finished + options_.window);
  for (; state.begun < end; ++state.begun) {
    transport_->send(peer, channel_, std::as_bytes(chunk_of(peer, state.begun)), notify(kPartSent, peer, state.begun));
  }
}

void AllReduce::receive_parts(std::size_t chunk) {
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer == rank_) continue;
    const std::span part(received(peer, chunk), slices_.chunk_size(rank_, chunk));
    transport_->receive(peer, channel_, std::as_writable_bytes(part), notify(kPartArrived, peer, chunk));
  }
}

void AllReduce::on_message(std::uint32_t token, std::size_t bytes) {
  const std::size_t place = token & ((1U << kPlaceBits) - 1);
  const auto peer = static_cast<int>((token >> kPlaceBits) & ((1U << kPeerBits) - 1));
  switch (token >> (kPlaceBits + kPeerBits)) {
    case kPartSent: part_sent(peer, place); break;
    case kPartArrived: part_arrived(peer, place, bytes); break;
    case kSumArrived: sum_arrived(peer, bytes); break;
    default: break;
  }
  --peers_[static_cast<std::size_t>(peer)].open;
  --open_;
}

// The parts of the own slice come from each rank directly. The sums of the others may be late because of a third rank.
bool AllReduce::waits_for(int peer) const noexcept {
  const Peer& state = peers_[static_cast<std::size_t>(peer)];
  if (added_ == slices_.chunks(rank_)) return state.open > 0;
  return (state.here_mask & 1U << (added_ % options_.window)) == 0;
}

// The sum of a part may replace it in `values` only once the part has been sent. Receives are posted in the order in
// which the owner sends the sums, which is that of the chunks.
void AllReduce::part_sent(int peer, std::size_t place) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  state.sent_mask |= 1U << place;
  for (;;) {
    const std::uint32_t bit = 1U << (state.finished % options_.window);
    if ((state.sent_mask & bit) == 0) break;
    state.sent_mask &= ~bit;
    transport_->receive(peer, channel_ + 1, std::as_writable_bytes(chunk_of(peer, state.finished)),
                        notify(kSumArrived, peer, state.finished));
    ++state.finished;
  }
  send_parts(peer);
}

void AllReduce::part_arrived(int peer, std::size_t place, std::size_t bytes) {
  const std::size_t window = options_.window;
  const std::size_t chunk = added_ + (place + window - added_ % window) % window;
  if (bytes != slices_.chunk_size(rank_, chunk) * sizeof(float)) fail_lengths(rank_, peer);
  peers_[static_cast<std::size_t>(peer)].here_mask |= 1U << place;
  ++arrived_[place];
  while (added_ < slices_.chunks(rank_) && arrived_[added_ % window] == ranks_ - 1) {
    arrived_[added_ % window] = 0;
    for (Peer& state : peers_) state.here_mask &= ~(1U << (added_ % window));
    add(added_);
    send_sum(added_);
    ++added_;
    if (added_ + window - 1 < slices_.chunks(rank_)) receive_parts(added_ + window - 1);
  }
}

// No sum is longer than its receive, so all have the right lengths if their total is right.
void AllReduce::sum_arrived(int peer, std::size_t bytes) {
  Peer& state = peers_[static_cast<std::size_t>(peer)];
  state.sum_bytes += bytes;
  if (++state.sums < slices_.chunks(peer)) return;
  if (state.sum_bytes != slices_.size(peer) * sizeof(float)) fail_lengths(rank_, peer);
}

void AllReduce::add(std::size_t chunk) {
  constexpr std::size_t kBlock = cpu::kPairwiseBlock;
  const std::span<float> own = chunk_of(rank_, chunk);
  for (int rank = 0; rank < ranks_; ++rank) {
    addends_[static_cast<std::size_t>(rank)] = rank == rank_ ? own.data() : received(rank, chunk);
  }
  std::array<float, kBlock> sums;
  for (std::size_t begin = 0; begin < own.size(); begin += kBlock) {
    const std::size_t size = std::min(kBlock, own.size() - begin);
    cpu::sum_vectors(addends_, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(size), sums.data());
    std::copy_n(sums.begin(), size, own.data() + begin);
  }
}

void AllReduce::send_sum(std::size_t chunk) {
  for (int step = 1; step < ranks_; ++step) {
    const int peer = (rank_ + step) % ranks_;
    transport_->send(peer, channel_ + 1, std::as_bytes(chunk_of(rank_, chunk)), notify(kSumSent, peer, chunk));
  }
}

}  // namespace arbalest::engine::process
