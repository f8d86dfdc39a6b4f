#include "engine/process/operations/agree.h"

#include <cstdint>
#include <cstring>

namespace arbalest::engine::process {

void Agree::start(Transport& transport, int channel) {
  transport_ = &transport;
  channel_ = channel;
  gather_.start(transport, channel);
  if (transport.rank() != 0) broadcast_.start(transport, channel);
}

void Agree::compare() {
  const std::vector<std::string>& values = gather_.result();
  for (std::size_t rank = 1; rank < values.size(); ++rank) {
    const auto number = static_cast<std::int32_t>(rank);
    if (values[rank] != values[0]) answer_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  broadcast_.start(*transport_, channel_);
}

std::vector<int> Agree::differing() const {
  std::vector<int> ranks(answer_.size() / sizeof(std::int32_t));
  if (!ranks.empty()) std::memcpy(ranks.data(), answer_.data(), answer_.size());
  return ranks;
}

}  // namespace arbalest::engine::process
