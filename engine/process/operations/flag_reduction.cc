#include "engine/process/operations/flag_reduction.h"

#include <span>

#include "engine/base/error.h"

namespace arbalest::engine::process {

namespace {

constexpr std::uint32_t kSentToken = 1000;  // other tokens are numbers of steps

}  // namespace

void FlagReduction::start(Transport& transport, int channel) {
  transport_ = &transport;
  channel_ = channel;
  while ((1 << steps_) < transport.size()) ++steps_;
  ARBALEST_CHECK(steps_ <= kMaxSteps);
  for (int step = 0; step < steps_; ++step) {
    Message& message = received_[static_cast<std::size_t>(step)];
    transport.receive(peer_behind(step), channel, std::as_writable_bytes(std::span(&message, 1)),
                      {this, static_cast<std::uint32_t>(step)});
  }
  if (steps_ > 0) send();
}

int FlagReduction::peer_behind(int step) const noexcept {
  return (transport_->rank() - (1 << step) + transport_->size()) % transport_->size();
}

void FlagReduction::send() {
  Message& message = sent_[static_cast<std::size_t>(step_)];
  message.header.bytes = sizeof message.flags;
  message.flags = flags_;
  ++outstanding_;
  transport_->send((transport_->rank() + (1 << step_)) % transport_->size(), channel_,
                   std::as_bytes(std::span(&message, 1)), {this, kSentToken});
}

void FlagReduction::on_message(std::uint32_t token, std::size_t bytes) {
  if (token == kSentToken) {
    --outstanding_;
    return;
  }
  const std::size_t received = bytes == sizeof(Message) ? sizeof(TransferHeader) : 0;
  check_header(received_[token].header, received, TransferKind::kFlags, peer_behind(static_cast<int>(token)),
               *transport_);
  is_here_[token] = true;
  while (step_ < steps_ && is_here_[static_cast<std::size_t>(step_)]) {
    flags_ |= received_[static_cast<std::size_t>(step_)].flags;
    if (++step_ < steps_) send();
  }
}

}  // namespace arbalest::engine::process
