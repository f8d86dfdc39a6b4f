// The stream on which a device times kernels.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "engine/cuda/runtime/library_handles.h"
#include "engine/cuda/runtime/stream.h"

namespace arbalest::engine::cuda {

// Any thread may call; one trial runs at a time.
class TrialStream {
 public:
  // `gate` is the device's, and must outlive this.
  TrialStream(std::string device, int ordinal, CaptureGate& gate)
      : device_(std::move(device)), ordinal_(ordinal), gate_(gate) {}

  // Returns measure(stream), which has the stream for itself; it runs operators for up to `replicas`. The device must
  // be the current one. Throws kOutOfMemory if memory for the stream is short, after which it has none.
  template <typename Measure>
  double run(int replicas, const Measure& measure) {
    const std::lock_guard lock(mutex_);
    if (stream_ == nullptr || replicas_ < replicas) {
      stream_.reset();
      stream_ = std::make_unique<CudaStream>(
          CudaStream::Options{.name = device_ + " kernel trial", .ordinal = ordinal_, .replicas = replicas}, gate_);
      replicas_ = replicas;
    }
    return measure(*stream_);
  }

  // Frees the stream, which the next trial would make again: 32 MiB, and the libraries' handles.
  void end() {
    const std::lock_guard lock(mutex_);
    stream_.reset();
  }

 private:
  const std::string device_;
  const int ordinal_;
  CaptureGate& gate_;
  std::mutex mutex_;
  std::unique_ptr<CudaStream> stream_;  // null: none is there
  int replicas_ = 0;
};

}  // namespace arbalest::engine::cuda
