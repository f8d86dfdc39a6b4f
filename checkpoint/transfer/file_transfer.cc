#include "checkpoint/transfer/file_transfer.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "engine/base/error.h"
#include "messages/failure.h"

namespace arbalest::jobs {

using engine::process::World;

namespace {

// The first byte of a message.
constexpr char kBytes = 'b';
constexpr char kEnd = 'e';
constexpr char kFailed = 'f';  // the kind of the error and its text follow

}  // namespace

void send_file(World& world, int to, const Fill& fill) {
  std::string piece(1, kBytes);
  piece.reserve(1 + kTransferBytes);
  const auto flush = [&] {
    if (piece.size() > 1) world.send(piece, to);
    piece.resize(1);
  };
  try {
    fill([&](std::span<const std::byte> bytes) {
      while (!bytes.empty()) {
        const std::size_t count = std::min(bytes.size(), 1 + kTransferBytes - piece.size());
        piece.append(reinterpret_cast<const char*>(bytes.data()), count);
        bytes = bytes.subspan(count);
        if (piece.size() == 1 + kTransferBytes) flush();
      }
    });
    flush();
  } catch (const std::exception& error) {
    const engine::Error known = as_error(error);
    if (known.kind() == engine::ErrorKind::kPeer) throw;  // there is nobody to tell
    world.send(std::string{kFailed, static_cast<char>(known.kind())} + known.what(), to);
    throw;
  }
  world.send(std::string(1, kEnd), to);
}

IncomingFile::~IncomingFile() {
  try {
    while (!is_over_ && !next().empty()) {
    }
  } catch (const std::exception&) {  // the sender has failed, so nothing more comes
  }
}

std::span<const std::byte> IncomingFile::next() {
  if (used_ < piece_.size()) {
    const std::size_t begin = std::exchange(used_, piece_.size());
    return std::as_bytes(std::span(piece_)).subspan(begin);
  }
  if (is_over_) return {};
  is_over_ = true;  // unless the message says otherwise
  piece_ = world_.receive(from_);
  used_ = piece_.size();
  if (piece_.front() == kFailed) {
    const auto kind = static_cast<engine::ErrorKind>(piece_.at(1));
    engine::fail(kind, "{}: {}", world_.place(from_), piece_.substr(2));
  }
  if (piece_.front() == kEnd) return {};
  is_over_ = false;
  return std::as_bytes(std::span(piece_)).subspan(1);
}

void IncomingFile::require_end() {
  if (!next().empty()) engine::fail(engine::ErrorKind::kCheckpoint, "the file is longer than the manifest says");
}

void IncomingFile::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = next();
    if (piece.empty()) engine::fail(engine::ErrorKind::kCheckpoint, "the file is shorter than the manifest says");
    const std::size_t count = std::min(piece.size(), bytes.size());
    std::memcpy(bytes.data(), piece.data(), count);
    used_ -= piece.size() - count;
    bytes = bytes.subspan(count);
  }
}

}  // namespace arbalest::jobs
