// All-reduce of one flat vector over the devices of a job.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/stream.h"

namespace arbalest::engine {

// What one rank brings to an all-reduce.
struct CollectivePart {
  Stream* stream = nullptr;  // the rank's; no two ranks share one
  float* values = nullptr;   // [elements], on the stream's device

  bool operator==(const CollectivePart&) const = default;
};

// Speaks of the ranks of this process, one per device. Where processes take part in it together, each makes the same
// calls in the same order.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int ranks() const noexcept = 0;

  // values <- sum over ranks of values, in place; bit-identical on every rank, additions in an order that repeats. In
  // memory the order is the pairwise tree over the ranks' numbers (engine/ops/averaging.h). NCCL has an order of its
  // own, so the bits of three or more GPUs are not the tree's.
  //   parts: one for each rank of this process, in order of ranks; kept no longer than the call, but for the streams
  // Allocates when it meets these parts for the first time only.
  // Stream ordering: enqueues on the parts' streams. The task ends on a stream only when no peer still reads or writes
  // that stream's values. The collective must outlive it.
  // Errors: throws ErrorKind::kOutOfMemory with nothing enqueued. After any other error (kInternal: a stream is
  // recording, or not one part per rank; kDevice; kPeer: NCCL) the streams are good for draining only. If a stream has
  // failed before its part, the other ranks fail there with kPeer instead of waiting for it: by themselves on CPU
  // devices, in wait() on GPUs.
  virtual void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) = 0;

  // Blocks the host until `event`, which may lie behind an all-reduce, has passed; throws the first error of the work
  // before it, like Event::synchronize, or that of a rank for which it would have waited forever. All streams of the
  // ranks are good for draining only then.
  virtual void wait(const Event& event) = 0;
};

// Devices of one process whose memory every stream thread can reach.
std::unique_ptr<Collective> make_memory_collective(int ranks);

}  // namespace arbalest::engine
