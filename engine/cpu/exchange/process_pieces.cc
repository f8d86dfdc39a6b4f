#include "engine/cpu/exchange/process_pieces.h"

#include <algorithm>
#include <cstring>

#include "engine/base/error.h"
#include "engine/cpu/runtime/parallel.h"

namespace arbalest::engine::cpu {

ProcessPieces::ProcessPieces(std::vector<int> devices, process::World& world)
    : world_(world), own_(static_cast<std::size_t>(world.rank())), operation_(world.size()) {
  ARBALEST_CHECK(static_cast<int>(devices.size()) == world.size());
  std::int64_t first = 0;
  for (const int count : devices) {
    processes_.push_back({.first = first, .devices = count});
    first += count;
  }
}

void ProcessPieces::reserve(const ExchangeSizes& sizes) {
  const auto grow = [](std::vector<float>& message, std::int64_t floats) {
    message.resize(std::max(message.size(), static_cast<std::size_t>(floats)));
  };
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    if (p == own_) continue;
    Process& other = processes_[p];
    grow(other.outgoing, message_floats(sizes, own().devices, other.devices));
    grow(other.incoming, message_floats(sizes, other.devices, own().devices));
  }
}

std::size_t ProcessPieces::bytes() const noexcept {
  std::size_t floats = 0;
  for (const Process& other : processes_) floats += other.outgoing.size() + other.incoming.size();
  return floats * sizeof(float);
}

void ProcessPieces::pack(std::size_t device, const float* values, const ExchangeSizes& sizes, int threads) {
  const auto shown = static_cast<std::int64_t>(device);
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    if (p == own_) continue;
    Process& other = processes_[p];
    for (std::int64_t reader = 0; reader < (sizes.is_shared() ? 1 : other.devices); ++reader) {
      const Piece piece = piece_of(sizes, values, other.first + reader);
      float* const to = other.outgoing.data() + offset(sizes, shown, reader, other.devices);
      for_each_part(threads, sizes.examples,
                    [&](std::int64_t row) { std::copy_n(piece.row(row), sizes.width(), to + row * sizes.width()); });
    }
  }
}

void ProcessPieces::exchange(const ExchangeSizes& sizes) {
  const Header header{exchanges_++, static_cast<std::int64_t>(sizes.kind), sizes.examples, sizes.columns};
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    if (p == own_) continue;
    Process& other = processes_[p];
    std::memcpy(other.outgoing.data(), header.data(), sizeof header);
    const auto sent = static_cast<std::size_t>(message_floats(sizes, own().devices, other.devices));
    const auto received = static_cast<std::size_t>(message_floats(sizes, other.devices, own().devices));
    operation_.set(static_cast<int>(p), std::as_bytes(std::span(other.outgoing).first(sent)),
                   std::as_writable_bytes(std::span(other.incoming).first(received)));
  }
  world_.exchange(operation_);
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    if (p == own_) continue;
    Header theirs;
    std::memcpy(theirs.data(), processes_[p].incoming.data(), sizeof theirs);
    if (theirs == header) continue;
    fail(ErrorKind::kPeer, "internal error: {} runs another all-gather or all-to-all than rank {}; please report this",
         world_.place(static_cast<int>(p)), own_);
  }
}

void ProcessPieces::get(std::size_t device, const ExchangeSizes& sizes, std::span<Piece> pieces) const {
  for (std::size_t p = 0; p < processes_.size(); ++p) {
    if (p == own_) continue;
    const Process& other = processes_[p];
    for (std::int64_t shown = 0; shown < other.devices; ++shown) {
      const std::int64_t at = offset(sizes, shown, static_cast<std::int64_t>(device), own().devices);
      pieces[static_cast<std::size_t>(other.first + shown)] = {other.incoming.data() + at, sizes.width()};
    }
  }
}

}  // namespace arbalest::engine::cpu
