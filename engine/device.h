// A device runs work: a set of CPU cores, or a GPU.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/buffer.h"
#include "engine/layout.h"
#include "engine/operator.h"
#include "engine/stream.h"

namespace arbalest::engine {

class StreamObserver;

struct StreamOptions {
  std::string name;       // what follows the device's name: "learner 0"
  int threads = 1;        // CPU: threads of the stream's primitives
  int first_core = 0;     // CPU, pinned devices: index of the first of `threads` cores of the device
  bool floating = false;  // CPU: may run on any core of the device (averaging)
};

class Device {
 public:
  virtual ~Device() = default;

  // As in a job file: "cpu:0-1".
  virtual const std::string& name() const noexcept = 0;
  virtual bool is_cuda() const noexcept { return false; }
  // Host cores that the device computes on.
  virtual int cores() const noexcept = 0;

  // Zeroed, 64-byte aligned. Throw ErrorKind::kOutOfMemory, after which the device is as before.
  virtual Buffer allocate(std::size_t bytes) = 0;
  // Host memory that the device copies from and to at full speed.
  virtual Buffer allocate_host(std::size_t bytes) = 0;
  // Bytes that allocate() could give now; others may take them first.
  virtual std::size_t free_memory() const = 0;

  virtual std::unique_ptr<Stream> create_stream(const StreamOptions& options) = 0;
  // What such a stream takes of the device's memory, handles of libraries and room for recordings included. May block
  // the host the first time. Throws kOutOfMemory where it cannot be found out for want of memory.
  virtual std::size_t stream_bytes(const StreamOptions& options) const = 0;

  // Throws ErrorKind::kDevice where the device cannot run the operator.
  virtual std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options) = 0;

  // Dense, canonical order.
  virtual Layout plain_layout(const Shape& shape, DType dtype) const = 0;
  // Copies `source` to `target`, from one layout of a shape to another (weights of a dense layer: of equal element
  // count, in canonical order); between float32 and bfloat16, too. Padding of the target becomes zero. The host blocks
  // until it is done.
  virtual void convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) = 0;
};

}  // namespace arbalest::engine
