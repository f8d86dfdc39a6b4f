// All-reduce of one flat vector over the devices of a job.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/stream.h"

namespace arbalest::engine {

class Collective {
 public:
  virtual ~Collective() = default;

  virtual int ranks() const noexcept = 0;

  // data <- sum over ranks of data, bit-identical on every rank, additions in an order that repeats.
  //   data: [elements] float32, the rank's own.
  // Stream ordering: enqueues on `stream`, the rank's. Every rank must enqueue the same sequence of collectives, and
  // all ranks of a process one collective before anything is enqueued behind it. The
  // task ends on a stream only when no peer still reads or writes that stream's data. If a rank's stream has failed,
  // its peers fail too instead of waiting for it.
  virtual void all_reduce_sum(Stream& stream, int rank, float* data, std::size_t elements, const char* label) = 0;
};

// Devices of one process whose memory every stream thread can reach.
std::unique_ptr<Collective> make_memory_collective(int ranks);

}  // namespace arbalest::engine
