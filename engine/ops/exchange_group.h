// The devices that compute a split model together (docs/parallelism.md). Their learners exchange activations and
// gradients inside the forward and backward pass (engine/ops/exchange.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace arbalest::engine {

// Every rank must run the same exchanges in the same order. A rank waits in each exchange for all others, so whoever
// enqueues such work on one rank's stream must enqueue it on all of them, or call break_up().
class ExchangeGroup {
 public:
  virtual ~ExchangeGroup() = default;

  virtual int ranks() const noexcept = 0;
  // Makes all exchanges that are under way, and all later ones, fail with ErrorKind::kPeer.
  virtual void break_up() noexcept = 0;
  // Host memory for messages between processes, once all operators are prepared.
  virtual std::size_t host_bytes() const noexcept { return 0; }
  // Bytes that the rank has received from the other ranks so far.
  virtual std::uint64_t received_bytes(int rank) const noexcept = 0;
};

}  // namespace arbalest::engine
