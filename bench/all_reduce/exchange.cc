#include "bench/all_reduce/exchange.h"

#include <algorithm>
#include <utility>

#include "engine/error.h"

namespace arbalest::bench {

using engine::process::Transport;

ExchangeSum::ExchangeSum(std::span<float> values, std::vector<Exchange> exchanges)
    : values_(values), exchanges_(std::move(exchanges)), next_(exchanges_.size()) {
  std::size_t longest = 0;
  for (const Exchange& exchange : exchanges_) {
    if (exchange.adds) longest = std::max(longest, exchange.received.size);
  }
  addends_.resize(longest);
}

void ExchangeSum::start(Transport& transport, int channel) {
  ARBALEST_CHECK(done());
  transport_ = &transport;
  channel_ = channel;
  next_ = 0;
  begin_next();
}

void ExchangeSum::begin_next() {
  while (open_ == 0 && next_ < exchanges_.size()) {
    const Exchange& exchange = exchanges_[next_++];
    const bool receives = exchange.from >= 0 && exchange.received.size > 0;
    const bool sends = exchange.to >= 0 && exchange.sent.size > 0;
    open_ = (receives ? kArrived : 0U) | (sends ? kSent : 0U);
    if (receives) {
      const std::span<float> room =
          exchange.adds ? std::span(addends_).first(exchange.received.size) : part(exchange.received);
      transport_->receive(exchange.from, channel_, std::as_writable_bytes(room), {this, kArrived});
    }
    if (sends) transport_->send(exchange.to, channel_, std::as_bytes(part(exchange.sent)), {this, kSent});
  }
}

bool ExchangeSum::waits_for(int peer) const noexcept {
  if (open_ == 0) return false;
  return ((open_ & kArrived) != 0 && peer == current().from) || ((open_ & kSent) != 0 && peer == current().to);
}

void ExchangeSum::on_message(std::uint32_t token, std::size_t bytes) {
  if (token == kArrived) {
    const std::span<float> own = part(current().received);
    if (bytes != own.size_bytes()) {
      engine::fail(engine::ErrorKind::kPeer, "a part from rank {} has {} bytes and not {}", current().from, bytes,
                   own.size_bytes());
    }
    if (current().adds) std::transform(own.begin(), own.end(), addends_.begin(), own.begin(), std::plus<>());
  }
  open_ &= ~token;
  begin_next();
}

}  // namespace arbalest::bench
