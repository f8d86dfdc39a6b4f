#include "engine/cpu/exchange/device_exchange.h"

#include <numeric>
#include <utility>

#include "engine/base/error.h"
#include "engine/process/world.h"

namespace arbalest::engine::cpu {

DeviceExchange::DeviceExchange(std::vector<int> devices, process::World& world)
    : ranks_(std::reduce(devices.begin(), devices.end())),
      first_(std::reduce(devices.begin(), devices.begin() + world.rank())),
      meeting_(devices[static_cast<std::size_t>(world.rank())], "exchange between devices"),
      shown_(static_cast<std::size_t>(devices[static_cast<std::size_t>(world.rank())])),
      pieces_(shown_.size(), std::vector<Piece>(static_cast<std::size_t>(ranks_))),
      received_(shown_.size()) {
  if (devices.size() > 1) elsewhere_ = std::make_unique<ProcessPieces>(std::move(devices), world);
}

void DeviceExchange::reserve(const ExchangeSizes& sizes) {
  if (elsewhere_) elsewhere_->reserve(sizes);
}

std::span<const Piece> DeviceExchange::meet(std::size_t device, const ShownTensor& own, int threads) {
  shown_[device] = own;
  if (elsewhere_) elsewhere_->pack(device, own.values, own.sizes, threads);
  meeting_.arrive_and_wait();
  for (const ShownTensor& other : shown_) ARBALEST_CHECK(other.sizes == own.sizes);
  if (elsewhere_) {
    // The first device runs the exchange of the processes. So an error of another process is an error of its stream.
    if (device == 0) elsewhere_->exchange(own.sizes);
    meeting_.arrive_and_wait();
    elsewhere_->get(device, own.sizes, pieces_[device]);
  }
  const auto reader = static_cast<std::int64_t>(device) + first_;
  for (std::size_t d = 0; d < shown_.size(); ++d) {
    pieces_[device][static_cast<std::size_t>(first_) + d] = piece_of(own.sizes, shown_[d].values, reader);
  }
  return pieces_[device];
}

}  // namespace arbalest::engine::cpu
