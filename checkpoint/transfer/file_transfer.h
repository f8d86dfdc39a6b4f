// Moves a file of a checkpoint from one process to another in pieces, so that neither holds all of it in memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/checkpoint_file.h"
#include "engine/process/world.h"

namespace arbalest::jobs {

inline constexpr std::size_t kTransferBytes = std::size_t{4} << 20;  // of a piece

// Sends what `fill` gives. If `fill` throws, the receiver gets the error, and it is passed on.
void send_file(engine::process::World& world, int to, const Fill& fill);

// Receives what another process sends with send_file().
class IncomingFile {
 public:
  IncomingFile(engine::process::World& world, int from) : world_(world), from_(from) {}
  ~IncomingFile();  // receives and drops the rest
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  // Returns the next bytes, and none at the end. Throws the error of the sender, with its rank and host.
  std::span<const std::byte> next();
  // Fills `bytes`. Throws kCheckpoint if the file is shorter.
  void read(std::span<std::byte> bytes);
  // Waits for the end. Throws the error of the sender, or kCheckpoint if the file is longer.
  void require_end();

 private:
  engine::process::World& world_;
  const int from_;
  std::string piece_;
  std::size_t used_ = 0;  // bytes of the piece that were returned; the first one tells its kind
  bool is_over_ = false;
};

}  // namespace arbalest::jobs
