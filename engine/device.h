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
  std::string name;       // appended to the device's name: "learner 0"
  int threads = 1;        // CPU: threads of the stream's primitives
  int first_core = 0;     // CPU with pinned cores: index, on the device, of the first of `threads` cores
  bool floating = false;  // CPU: the stream may run on any core of the device (for averaging)
};

class Device {
 public:
  virtual ~Device() = default;

  // The device's name in a job file: "cpu:0-1".
  virtual const std::string& name() const noexcept = 0;
  virtual bool is_cuda() const noexcept { return false; }
  // Number of host cores that the device computes on.
  virtual int cores() const noexcept = 0;

  // Memory of the device, zeroed, 64-byte aligned. Both allocate functions throw ErrorKind::kOutOfMemory and then leave
  // the device unchanged.
  virtual Buffer allocate(std::size_t bytes) = 0;
  // Host memory for copies from and to the device at full speed.
  virtual Buffer allocate_host(std::size_t bytes) = 0;
  // Bytes that allocate() could provide now; others may take them first.
  virtual std::size_t free_memory() const = 0;

  virtual std::unique_ptr<Stream> create_stream(const StreamOptions& options) = 0;
  // Bytes of the device's memory that such a stream takes, with the libraries' handles and room for recordings. May
  // block the host the first time. Throws kOutOfMemory if too little memory is free to find out.
  virtual std::size_t stream_bytes(const StreamOptions& options) const = 0;

  // Throws ErrorKind::kDevice if the device cannot run the operator.
  virtual std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options) = 0;

  // The dense layout in canonical order.
  virtual Layout plain_layout(const Shape& shape, DType dtype) const = 0;
  // Copies `source` to `target` and converts between two layouts of a shape (for weights of a dense layer: of equal
  // element count, in canonical order), and between float32 and bfloat16. Padding of the target becomes zero. Blocks
  // the host until the copy is complete.
  virtual void convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) = 0;
};

}  // namespace arbalest::engine
