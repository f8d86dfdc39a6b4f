// Measures the cost of averaging on a GPU: its kernels alone, and the bytes that an all-reduce would move.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "engine/devices.h"
#include "engine/stream_observer.h"

namespace arbalest::bench {

// Seconds of one averaging of `learners` vectors with nothing else on the GPU.
struct AveragingSeconds {
  double one_device = 0.0;       // the pass of a device that averages alone
  double several_devices = 0.0;  // the two passes before and behind an all-reduce, without it
};
AveragingSeconds time_averaging(const std::string& device, int learners, std::size_t elements);

// Stands for the all-reduce of two GPUs, which a machine with one has not: NCCL with one rank does nothing. Behind
// every averaging, where the all-reduce would be and learners wait, it copies the summed vector twice: as many bytes as
// a ring of two ranks sends and receives. Copies within a device are faster than links between devices, so this is a
// lower bound.
class CopiedAllReduce final : public engine::StreamObserver {
 public:
  CopiedAllReduce(const std::string& device, std::size_t elements);

  void before_task(const engine::Stream& stream, const char* label) override;
  void after_task(const engine::Stream&, const char*) override {}

 private:
  std::unique_ptr<engine::Device> device_;
  std::size_t bytes_;
  engine::Buffer from_;
  engine::Buffer to_;
  bool due_ = false;
  bool copies_ = false;  // now: the copies are tasks, too
};

}  // namespace arbalest::bench
