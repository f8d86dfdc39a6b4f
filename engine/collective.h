// All-reduce of one flat vector over the devices of a job.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/stream.h"

namespace arbalest::engine {

// The contribution of one rank to an all-reduce.
struct CollectivePart {
  Stream* stream = nullptr;  // the rank's own stream; no two ranks share one
  float* values = nullptr;   // [elements], on the stream's device

  bool operator==(const CollectivePart&) const = default;
};

// A Collective holds the ranks of this process, one per device. If several processes take part, each must make the same
// calls in the same order.
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int ranks() const noexcept = 0;
  // Whether other processes take part, too.
  virtual bool spans_processes() const noexcept { return false; }

  // Sets `values` to the sum over ranks, in place. The sum is bit-identical on every rank, and its order of additions
  // is the same in every run. The memory collective adds in the order of the pairwise tree over rank numbers
  // (engine/passes/averaging.h). NCCL adds in the order of a ring, so with three or more GPUs its bits differ from the
  // tree's.
  //   parts: one per rank of this process, in order of ranks; not kept after the call, except for the streams
  // Allocates only when it meets these parts for the first time.
  //
  // Stream ordering: enqueues on the parts' streams. The task ends on a stream only when no peer still reads or writes
  // that stream's values. The collective must outlive the task.
  //
  // Errors: throws ErrorKind::kOutOfMemory with nothing enqueued. After any other error (kInternal: a stream is
  // recording, or the number of parts is wrong; kDevice; kPeer: NCCL or another process) the streams can only be
  // drained. If a stream fails before its part, the other ranks fail with kPeer instead of waiting forever. CPU ranks
  // then fail on their streams; GPU ranks fail in wait().
  virtual void all_reduce_sum(std::span<const CollectivePart> parts, std::size_t elements, const char* label) = 0;

  // Blocks the host until `event` has passed; the event may follow an all-reduce. Throws the first error of the work
  // before the event, like Event::synchronize. If a rank or another process failed and the event would never pass,
  // throws that error. Afterwards all streams of the ranks can only be drained.
  virtual void wait(const Event& event) = 0;
};

// A collective over devices of one process whose memory every stream thread can reach.
std::unique_ptr<Collective> make_memory_collective(int ranks);

namespace process {
class World;
}

// A collective over CPU devices of all processes of `world`, which have `local_ranks` devices each. The devices of this
// process are added first, then the processes. So with a power of two of devices the bits are those of one process with
// all devices. If a stream fails before its part, the streams of other processes fail with kPeer, too. `world` must
// outlive it.
std::unique_ptr<Collective> make_process_collective(int local_ranks, process::World& world);

}  // namespace arbalest::engine
