#include "engine/process/operations/gather.h"

namespace arbalest::engine::process {

void Gather::start(Transport& transport, int channel) {
  is_root_ = transport.rank() == 0;
  if (!is_root_) return outgoing_.start(transport, 0, channel, TransferKind::kGather, own_);
  const int size = transport.size();
  result_.resize(static_cast<std::size_t>(size));
  result_[0] = own_;
  missing_ = size - 1;
  for (int rank = 1; rank < size; ++rank) {
    incoming_.emplace_back().start(transport, rank, channel, TransferKind::kGather, [this, rank] { arrived(rank); });
  }
}

void Gather::arrived(int rank) {
  const auto index = static_cast<std::size_t>(rank);
  result_[index] = std::move(incoming_[index - 1].payload());
  if (--missing_ == 0 && on_arrival_) on_arrival_();
}

bool Gather::done() const noexcept { return is_root_ ? missing_ == 0 : outgoing_.done(); }

bool Gather::waits_for(int peer) const noexcept {
  if (!is_root_) return outgoing_.waits_for(peer);
  return peer != 0 && !incoming_[static_cast<std::size_t>(peer) - 1].done();
}

}  // namespace arbalest::engine::process
