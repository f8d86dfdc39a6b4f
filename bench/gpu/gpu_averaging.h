// Measures the cost of averaging on a GPU: its kernels alone, and the bytes that an all-reduce would move.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/backends/devices.h"
#include "engine/stream_observer.h"

namespace arbalest::bench {

// Seconds of one averaging of `learners` vectors while the GPU does no other work.
struct AveragingSeconds {
  double one_device = 0.0;       // the pass for averaging on a single device
  double several_devices = 0.0;  // the two passes before and after an all-reduce, without the all-reduce
};
AveragingSeconds time_averaging(const std::string& device, int learners, std::size_t elements);

// Simulates the all-reduce of two GPUs on a machine with one, where NCCL with one rank would do nothing. After every
// averaging, at the place of the all-reduce for which learners wait, it copies the summed vector twice. This moves as
// many bytes as a ring of two ranks sends and receives. Copies within a device are faster than links between devices,
// so this is a lower bound.
class CopiedAllReduce final : public engine::StreamObserver {
 public:
  CopiedAllReduce(const std::string& device, std::size_t elements);

  void before_task(const engine::Stream& stream, const engine::TaskInfo& task) override;
  void after_task(const engine::Stream&, const engine::TaskInfo&) override {}

 private:
  std::unique_ptr<engine::Device> device_;
  std::size_t bytes_;
  engine::Buffer from_;
  engine::Buffer to_;
  bool due_ = false;
  bool copies_ = false;  // copies are being enqueued, which are tasks that the observer must ignore
};

}  // namespace arbalest::bench
