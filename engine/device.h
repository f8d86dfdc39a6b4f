// A device runs work: a set of CPU cores, or a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/layout.h"
#include "engine/buffer.h"
#include "engine/kernel_choices.h"
#include "engine/operator.h"
#include "engine/stream.h"

namespace arbalest::engine {

struct StreamOptions {
  std::string name;    // appended to the device's name: "learner 0"
  int threads = 1;     // CPU: threads of the stream's primitives
  int first_core = 0;  // CPU with pinned cores: the stream uses `threads` cores of the device, from this index on
  StreamRole role = StreamRole::kLearner;
  int replicas = 1;  // of a team, for which recordings are made; more than one only if Device::takes_teams()
};

class Device {
 public:
  virtual ~Device() = default;

  // The device's name in a job file: "cpu:0-1".
  virtual const std::string& name() const noexcept = 0;
  virtual bool is_cuda() const noexcept { return false; }
  // Whether one stream can run the work of several replicas at once (replica_memory.h).
  virtual bool takes_teams() const noexcept { return false; }
  // Number of host cores that the device computes on.
  virtual int cores() const noexcept = 0;

  // Memory of the device, zeroed, 64-byte aligned. Both allocate functions throw ErrorKind::kOutOfMemory and then leave
  // the device unchanged.
  virtual Buffer allocate(std::size_t bytes) = 0;
  // Host memory, zeroed; pinned if the device is a GPU, so that copies run at full speed.
  virtual Buffer allocate_host(std::size_t bytes) = 0;
  // Bytes that allocate() could provide now; other threads or programs may take them first.
  virtual std::size_t free_memory() const = 0;

  virtual std::unique_ptr<Stream> create_stream(const StreamOptions& options) = 0;
  // Bytes of device memory that a stream with these options takes, including library handles and CUDA graphs; 0 on a
  // CPU. The first call on a GPU creates handles to measure them: it may block the host. Throws kOutOfMemory if too
  // little memory is free to find out.
  virtual std::size_t stream_bytes(const StreamOptions& options) const = 0;

  // Throws ErrorKind::kDevice if the device cannot run the operator, or if a recorded choice names kernels that the
  // operator does not have.
  virtual std::unique_ptr<Operator> prepare(const OperatorSpec& spec, const PrepareOptions& options) = 0;

  // The kernels chosen for the operators prepared so far, without duplicates, in the order of the first. CPU: none.
  virtual std::vector<KernelChoice> kernel_choices() const { return {}; }
  // From now on, prepare() takes these choices where they answer a question that it has not answered yet.
  virtual void take_kernel_choices(std::span<const KernelChoice> /*recorded*/) {}

  // The contiguous layout in canonical order (NCHW), without padding.
  virtual Layout plain_layout(const Shape& shape, DType dtype) const = 0;
  // The layout of these NativeLayout::numbers(), which may come from a device of another process. Throws
  // ErrorKind::kDevice if they are not those of a parameter's layout of this kind of device.
  virtual Layout layout_of(const Shape& shape, DType dtype, std::span<const std::int64_t> numbers) const = 0;
  // Copies `source` to `target`, and converts the layout and between float32 and bfloat16. Both may be memory of the
  // host or of the device, and have the same shape; CUDA also takes weights of a dense layer in another shape with as
  // many elements in canonical order. Padding of the target becomes zero. Blocks the host until the copy is complete.
  virtual void convert(const Layout& source_layout, const void* source, const Layout& target_layout, void* target) = 0;
};

}  // namespace arbalest::engine
