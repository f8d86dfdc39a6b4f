#include "engine/process/operations/all_to_all.h"

#include "engine/base/error.h"
#include "engine/process/operations/pieces.h"

namespace arbalest::engine::process {

namespace {

// A token holds the other rank, and whether its message is one that arrives.
std::uint32_t token_of(std::size_t peer, bool arrives) {
  return static_cast<std::uint32_t>(peer) << 1U | (arrives ? 1U : 0U);
}

}  // namespace

void AllToAll::set(int peer, std::span<const std::byte> outgoing, std::span<std::byte> incoming) {
  Peer& of = peers_[static_cast<std::size_t>(peer)];
  of.outgoing = outgoing;
  of.incoming = incoming;
}

void AllToAll::start(Transport& transport, int channel) {
  ARBALEST_CHECK(open_ == 0 && transport.size() == static_cast<int>(peers_.size()));
  rank_ = transport.rank();
  const auto own = static_cast<std::size_t>(rank_);
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer == own) continue;
    Peer& of = peers_[peer];
    of.arrived = 0;
    const auto receive = [&](std::size_t begin, std::size_t size) {
      transport.receive(static_cast<int>(peer), channel, of.incoming.subspan(begin, size),
                        {this, token_of(peer, true)});
    };
    of.open = of.missing = for_pieces(of.incoming.size(), receive, piece_);
  }
  // Each rank begins with the one behind it, so that no rank gets the first messages of all.
  for (std::size_t step = 1; step < peers_.size(); ++step) {
    const std::size_t peer = (own + step) % peers_.size();
    Peer& of = peers_[peer];
    const auto send = [&](std::size_t begin, std::size_t size) {
      transport.send(static_cast<int>(peer), channel, of.outgoing.subspan(begin, size), {this, token_of(peer, false)});
    };
    of.open += for_pieces(of.outgoing.size(), send, piece_);
    open_ += of.open;
  }
}

// The pieces of a rank may be reported in any order. None is longer than its receive, so all have the right lengths if
// their total is right.
void AllToAll::on_message(std::uint32_t token, std::size_t bytes) {
  const std::size_t peer = token >> 1U;
  Peer& of = peers_[peer];
  --of.open;
  --open_;
  if ((token & 1U) == 0) return;
  of.arrived += bytes;
  if (--of.missing == 0 && of.arrived < of.incoming.size()) {
    fail(ErrorKind::kPeer, "internal error: ranks {} and {} exchange tensors of different sizes; please report this",
         rank_, peer);
  }
}

}  // namespace arbalest::engine::process
