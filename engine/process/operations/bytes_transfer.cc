#include "engine/process/operations/bytes_transfer.h"

#include <span>
#include <utility>

#include "engine/base/error.h"
#include "engine/process/operations/pieces.h"

namespace arbalest::engine::process {

namespace {

constexpr std::uint32_t kHeaderToken = 0;
constexpr std::uint32_t kPieceToken = 1;

}  // namespace

void check_header(const TransferHeader& header, std::size_t bytes, TransferKind kind, int peer,
                  const Transport& transport) {
  const TransferHeader expected;
  if (bytes != sizeof header || header.magic != expected.magic) {
    fail(ErrorKind::kPeer,
         "{} runs another version of the program, or has another byte order; start the same program on all hosts",
         place_of(transport, peer));
  }
  if (header.kind != kind) {
    fail(ErrorKind::kPeer, "internal error: {} is in another operation than rank {}; please report this",
         place_of(transport, peer), transport.rank());
  }
}

void OutgoingBytes::start(Transport& transport, int peer, int channel, TransferKind kind, std::string_view payload) {
  peer_ = peer;
  header_ = {.kind = kind, .bytes = payload.size()};
  ++outstanding_;
  transport.send(peer, channel, std::as_bytes(std::span(&header_, 1)), {this, kHeaderToken});
  outstanding_ += for_pieces(payload.size(), [&](std::size_t begin, std::size_t size) {
    transport.send(peer, channel, std::as_bytes(std::span(payload).subspan(begin, size)), {this, kPieceToken});
  });
}

void OutgoingBytes::on_message(std::uint32_t, std::size_t) { --outstanding_; }

void IncomingBytes::start(Transport& transport, int peer, int channel, TransferKind kind,
                          std::function<void()> on_arrival) {
  transport_ = &transport;
  peer_ = peer;
  channel_ = channel;
  kind_ = kind;
  on_arrival_ = std::move(on_arrival);
  receive_next();
}

void IncomingBytes::receive_next() {
  done_ = false;
  transport_->receive(peer_, channel_, std::as_writable_bytes(std::span(&header_, 1)), {this, kHeaderToken});
}

void IncomingBytes::on_message(std::uint32_t token, std::size_t bytes) {
  if (token == kPieceToken) {
    if (--outstanding_ == 0) finish();
    return;
  }
  check_header(header_, bytes, kind_, peer_, *transport_);
  payload_.resize(header_.bytes);
  if (payload_.empty()) return finish();
  outstanding_ = for_pieces(payload_.size(), [&](std::size_t begin, std::size_t size) {
    transport_->receive(peer_, channel_, std::as_writable_bytes(std::span(payload_).subspan(begin, size)),
                        {this, kPieceToken});
  });
}

void IncomingBytes::finish() {
  done_ = true;
  if (on_arrival_) on_arrival_();
}

}  // namespace arbalest::engine::process
