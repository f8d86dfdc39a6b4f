#include "engine/process/operations/broadcast.h"

#include <algorithm>

namespace arbalest::engine::process {

// Ranks are counted from the root. The parent of a rank is the rank without its lowest bit.
void Broadcast::start(Transport& transport, int channel) {
  transport_ = &transport;
  channel_ = channel;
  const int place = (transport.rank() - root_ + transport.size()) % transport.size();
  if (place == 0) return send_to_children();
  parent_ = ((place & (place - 1)) + root_) % transport.size();
  from_parent_.start(transport, parent_, channel, TransferKind::kBroadcast, [this] {
    bytes_ = std::move(from_parent_.payload());
    send_to_children();
  });
}

void Broadcast::send_to_children() {
  has_bytes_ = true;
  const int size = transport_->size();
  const int place = (transport_->rank() - root_ + size) % size;
  // The farthest child has the largest subtree, so it is served first.
  int step = 1;
  while (step < size && (place & step) == 0) step *= 2;
  for (step /= 2; step > 0; step /= 2) {
    if (place + step >= size) continue;
    to_children_.emplace_back().start(*transport_, (place + step + root_) % size, channel_, TransferKind::kBroadcast,
                                      bytes_);
  }
}

bool Broadcast::done() const noexcept {
  return has_bytes_ && std::ranges::all_of(to_children_, [](const OutgoingBytes& child) { return child.done(); });
}

bool Broadcast::waits_for(int peer) const noexcept {
  if (!has_bytes_) return peer == parent_;
  return std::ranges::any_of(to_children_, [peer](const OutgoingBytes& child) { return child.waits_for(peer); });
}

}  // namespace arbalest::engine::process
